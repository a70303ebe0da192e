// The model that searches may ask: one of the editor's own, or of a server that the person names.
import * as vscode from 'vscode';
import { lendsModels, nameOf } from './lending';
import { askForModelKey } from './secrets';
import type { Server } from './server';
import { keep } from './settings';

/** In `model.base_url`: the editor's own models. */
const EDITOR = 'editor';

/** What `model.base_url` takes of a person's own: nothing that can be read on the way. */
const ADDRESS = /^(https:\/\/\S+|http:\/\/(localhost|127(\.\d+){3}|\[::1\])(:\d+)?(\/\S*)?)$/;

/** Let the person choose one of the editor's models, or none of them, and keep the choice in the settings. */
export async function chooseModel(): Promise<void> {
  const there = lendsModels() ? await vscode.lm.selectChatModels() : [];
  if (!there.length) {
    const message = vscode.l10n.t('No extension lends this editor a language model. Install one that does, or set model.base_url to a server of your own.');
    void vscode.window.showInformationMessage(message);
    return;
  }
  const configuration = vscode.workspace.getConfiguration('accelopt');
  const current = configuration.get('model.base_url') === EDITOR ? configuration.get<string>('model.model') : undefined;
  const items = there.map((model): vscode.QuickPickItem & { model?: string } => ({
    model: nameOf(model),
    label: `${nameOf(model) === current ? '$(check) ' : ''}${model.name}`,
    description: nameOf(model),
    detail: vscode.l10n.t('reads up to {0} tokens', model.maxInputTokens.toLocaleString()),
  }));
  if (current) {
    items.push({ label: vscode.l10n.t('None of them'), description: vscode.l10n.t('rules and the memory only') });
  }
  const title = vscode.l10n.t('The model that AccelOpt asks when you optimize or explain');
  const placeHolder = vscode.l10n.t('What it is sent is shown before the first time, and you are asked');
  const chosen = await vscode.window.showQuickPick(items, { title, placeHolder });
  if (!chosen) {
    return;
  }
  const kept = await keep({ 'model.base_url': chosen.model && EDITOR, 'model.model': chosen.model });
  if (kept && chosen.model) {
    void vscode.window.setStatusBarMessage(vscode.l10n.t('AccelOpt asks {0} when you optimize or explain.', chosen.model), 8000);
  }
}

/** Add a model of a server of one's own: its address, name, key and price; it is asked one question. */
export async function addModel(context: vscode.ExtensionContext, server: Server): Promise<void> {
  const title = vscode.l10n.t('Add a model');
  const ask = (prompt: string, more: vscode.InputBoxOptions = {}) => vscode.window.showInputBox({ title, prompt, ignoreFocusOut: true, ...more });
  const configuration = vscode.workspace.getConfiguration('accelopt');
  const editor = vscode.l10n.t('One of the editor\'s models...');
  const own = vscode.l10n.t('A server of your own...');
  const local = 'http://localhost:11434/v1';
  const where = await vscode.window.showQuickPick([editor, own], { title });
  if (where !== own) {
    await (where && chooseModel());
    return;
  }
  const base_url = await ask(vscode.l10n.t('Address of an OpenAI-compatible server: https, or this machine'), {
    value: configuration.get('model.base_url', '').replace(EDITOR, '') || local,
    validateInput: (text) => (ADDRESS.test(text.trim()) ? undefined : vscode.l10n.t('https://..., or http://localhost:PORT/...')),
  });
  const model = base_url && await ask(vscode.l10n.t('The name of the model there'), { value: configuration.get('model.model', '') });
  if (!base_url || !model) {
    return;
  }
  await askForModelKey(context);
  const price = async (prompt: string) => Number(await ask(prompt, {
    value: '0', validateInput: (text) => (Number(text) >= 0 ? undefined : vscode.l10n.t('A number; 0: no money is counted')),
  }));
  const price_in = await price(vscode.l10n.t('Price of a million tokens sent, in any currency'));
  const price_out = await price(vscode.l10n.t('Price of a million tokens written'));
  await keep({
    'model.base_url': base_url.trim(), 'model.model': model.trim(), 'model.price_in': price_in || undefined, 'model.price_out': price_out || undefined,
  });
  await server.restart(); // the key reaches the server with its environment
  const asking = { location: vscode.ProgressLocation.Notification, title: vscode.l10n.t('AccelOpt: asking {0}', model) };
  const answer = await vscode.window.withProgress(asking, async () => server.execute<{ answer: string; fault: string }>('testModel', {}));
  if (answer?.fault) {
    const again = vscode.l10n.t('Change It...');
    if ((await vscode.window.showErrorMessage(vscode.l10n.t('{0} does not answer: {1}', model, answer.fault), again)) === again) {
      await addModel(context, server);
    }
  } else if (answer) {
    void vscode.window.showInformationMessage(vscode.l10n.t('{0} answers. Before a kernel is sent you are asked.', model));
  }
}
