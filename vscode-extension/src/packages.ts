// Quick fixes of a missing package: another Python for kernels or, where torch is missing, torch beside the server.
import * as vscode from 'vscode';
import { interpreters } from './interpreter';

export class PackageFixes implements vscode.CodeActionProvider {
  static readonly kind = vscode.CodeActionKind.QuickFix.append('accelopt');

  constructor(private readonly context: vscode.ExtensionContext, private readonly output: vscode.LogOutputChannel) {}

  async provideCodeActions(
    _: vscode.TextDocument, __: vscode.Range, { diagnostics }: vscode.CodeActionContext,
  ): Promise<vscode.CodeAction[]> {
    const missing = diagnostics.filter((one) => one.source === 'accelopt' && codeOf(one) === 'missing-package');
    if (!missing.length) {
      return [];
    }
    const [usual] = await interpreters(this.context, this.output);
    const install = fix(vscode.l10n.t('Install torch and Triton for AccelOpt (0.4 GB to fetch, 1.7 GB on disk)'), 'accelopt.installTorch', missing);
    const choose = fix(vscode.l10n.t('Choose the Python whose packages kernels see...'), 'accelopt.chooseInterpreter', missing);
    return usual?.torch && usual.triton ? [choose] : [install, choose];
  }
}

function fix(title: string, command: string, diagnostics: vscode.Diagnostic[]): vscode.CodeAction {
  const action = new vscode.CodeAction(title, PackageFixes.kind);
  action.command = { title, command };
  action.diagnostics = diagnostics;
  return action;
}

const codeOf = ({ code }: vscode.Diagnostic): unknown => (typeof code === 'object' ? code.value : code);
