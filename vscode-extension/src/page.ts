// A Markdown page of the server's own, such as why a suggestion is faster, in the editor's preview.
import * as vscode from 'vscode';

/** Show the page at `uri`; the server serves its text, and tells when there is a newer one. */
export async function showPage({ uri }: { uri: string; title: string }): Promise<void> {
  const page = vscode.Uri.parse(uri, true);
  await vscode.workspace.openTextDocument(page);
  await vscode.commands.executeCommand('markdown.showPreview', page);
}
