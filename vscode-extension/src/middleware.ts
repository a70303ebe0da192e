// In VS Code a suggestion is looked at before it is applied: choosing its action opens the diff view.
import * as vscode from 'vscode';
import type { Middleware } from 'vscode-languageclient/node';

const KIND = 'refactor.rewrite.accelopt.suggestion';

const isSuggestion = (action: vscode.CodeAction): boolean => action.kind?.value === KIND;

export const suggestionMiddleware: Middleware = {
  async provideCodeActions(document, range, context, token, next) {
    const actions = await next(document, range, context, token);
    for (const action of actions ?? []) {
      if (action instanceof vscode.CodeAction && isSuggestion(action) && action.command?.arguments) {
        const title = action.title;
        const shown = { ...action.command.arguments[0], title };
        action.command = { command: 'accelopt.showSuggestion', title, arguments: [shown] };
        action.edit = undefined;
      }
    }
    return actions;
  },
  async resolveCodeAction(action, token, next) {
    return isSuggestion(action) ? action : next(action, token);
  },
};
