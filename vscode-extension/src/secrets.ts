// The model's key: kept in the editor's secret storage, and given to the server's process alone, as the environment
// variable that the server reads. It is in no setting, no log and no message.
import * as vscode from 'vscode';

const STORED = 'accelopt.model.key';
const VARIABLE = 'ACCELOPT_MODEL_KEY';

/** Ask for the key and keep it; an empty one takes it away. Tells whether anything changed. */
export async function askForModelKey(context: vscode.ExtensionContext): Promise<boolean> {
  const key = await vscode.window.showInputBox({
    title: vscode.l10n.t('Key of the model'),
    prompt: vscode.l10n.t('Kept in the secret storage of this editor. Empty: forget it.'),
    password: true,
    ignoreFocusOut: true,
  });
  if (key === undefined) {
    return false;
  }
  await (key.trim() ? context.secrets.store(STORED, key.trim()) : context.secrets.delete(STORED));
  return true;
}

/** The server's environment: the editor's, with the key unless one is there, in a trusted workspace only. */
export async function serverEnvironment(context: vscode.ExtensionContext): Promise<NodeJS.ProcessEnv> {
  const key = vscode.workspace.isTrusted ? await context.secrets.get(STORED) : undefined;
  return key && !process.env[VARIABLE] ? { ...process.env, [VARIABLE]: key } : process.env;
}
