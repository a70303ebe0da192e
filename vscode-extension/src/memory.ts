// What the memory holds: the server writes the page, and asks before it forgets.
import * as vscode from 'vscode';
import type { Server } from './server';

/** Show the changes that hold some words or, without any, those that a search would try on the kernel at the cursor. */
export async function showMemory(server: Server): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const query = await vscode.window.showInputBox({
    title: vscode.l10n.t('Show remembered changes'),
    prompt: vscode.l10n.t('Words to look for; nothing: changes of kernels like the one at the cursor'),
    placeHolder: vscode.l10n.t('split tl.dot'),
  });
  if (editor && query !== undefined) {
    await server.execute('showMemory', { uri: editor.document.uri.toString(), line: editor.selection.active.line + 1, query });
  }
}

/** Forget one for good: the one of the side bar, else the one whose id the person enters. */
export async function forget(server: Server, row?: { pair: { id: string } }): Promise<void> {
  if (row) {
    await server.execute('forget', { id: row.pair.id });
    return;
  }
  const uri = vscode.window.activeTextEditor?.document.uri.toString();
  const id = await vscode.window.showInputBox({
    title: vscode.l10n.t('Forget a remembered change'),
    prompt: vscode.l10n.t('Its id, or the beginning of it, as the page of remembered changes has it'),
    validateInput: (text) => /^[0-9a-f]{4,16}$/.test(text.trim()) ? undefined : vscode.l10n.t('4 to 16 hexadecimal digits'),
  });
  if (uri && id) {
    await server.execute('forget', { uri, id: id.trim() });
  }
}
