// The kernel that a command is about: the one at the cursor, or the one whose suggestion is looked at.
import * as vscode from 'vscode';
import { SCHEME, namedBy } from './candidate';
import type { Server } from './server';
import { tell } from './states';

export interface Place {
  uri: string;
  line: number;
}

/** The document and the 1-based line of the cursor, on either side of a suggestion's diff. */
export function placeOfCursor(): Place | undefined {
  const editor = vscode.window.activeTextEditor;
  if (editor?.document.languageId !== 'python') {
    return undefined;
  }
  const shown = editor.document.uri;
  const uri = shown.scheme === SCHEME ? namedBy(shown).uri : shown.toString();
  return { uri, line: editor.selection.active.line + 1 };
}

/** Run a server command on the kernel at the cursor; in a file without one, say what to do. */
export async function onKernelAtCursor(server: Server, name: string, more: object = {}): Promise<void> {
  const place = placeOfCursor();
  if (place && !server.isPlain(place.uri)) {
    await server.execute(name, { ...place, ...more });
  } else {
    sayNoKernel();
  }
}

/** Say what to do where there is no kernel at the cursor. */
export function sayNoKernel(): void {
  void tell('no-kernel', vscode.l10n.t('Open a Python file with a Triton or NKI kernel, and put the cursor into it.'));
}
