// The address of a suggestion's text: a document that the server serves, for the right side of a diff.
import * as vscode from 'vscode';

export const SCHEME = 'accelopt-candidate';

/** The address of the suggestion `id` for the file at `uri`. */
export function candidateUri(id: string, uri: string): vscode.Uri {
  return vscode.Uri.from({ scheme: SCHEME, path: vscode.Uri.parse(uri, true).path, query: `id=${id}` });
}

/** The suggestion and its file that a candidate's address names. */
export function namedBy(candidate: vscode.Uri): { id: string; uri: string } {
  const id = new URLSearchParams(candidate.query).get('id') ?? '';
  return { id, uri: vscode.Uri.file(candidate.path).toString() };
}
