// A way to the extension's settings in the editor.
import * as vscode from 'vscode';

/** Open the settings editor at the settings whose names begin so; all of the extension's by default. */
export const openSettings = (name = 'accelopt.'): Thenable<unknown> =>
  vscode.commands.executeCommand('workbench.action.openSettings', name);
