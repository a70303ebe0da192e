// One item in the status bar: what the server is doing, and a click away from what can be done about it.
import * as vscode from 'vscode';
import { MENDS, inFront, type Status } from './states';

const ICONS: Record<Status['state'], string> = {
  'idle': '$(dashboard)',
  'profiling': '$(sync~spin)',
  'optimizing': '$(sync~spin)',
  'paused': '$(debug-pause)',
  'host-unreachable': '$(debug-disconnect)',
  'untrusted': '$(shield)',
  'starting': '$(sync~spin)',
  'not-installed': '$(cloud-download)',
  'wrong-interpreter': '$(error)',
  'stopped': '$(error)',
  'no-kernel': '$(dashboard)',
};

const WARNING = new vscode.ThemeColor('statusBarItem.warningBackground');

export class StatusItem implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<Status>();
  readonly onChanged = this.changed.event;
  shown: Status = { state: 'stopped', message: '' };
  private readonly item = vscode.window.createStatusBarItem('accelopt.status', vscode.StatusBarAlignment.Right, 90);
  private readonly listening = vscode.window.onDidChangeActiveTextEditor(() => this.draw());

  constructor() {
    this.item.name = 'AccelOpt';
    this.item.command = 'accelopt.showMenu';
    this.item.show();
  }

  show(status: Status): void {
    this.shown = status;
    this.changed.fire(status);
    this.draw();
    void vscode.commands.executeCommand('setContext', 'accelopt.state', status.state);
    void vscode.commands.executeCommand('setContext', 'accelopt.running', Boolean(status.jobs?.length));
  }

  private draw(): void {
    const status = inFront(this.shown);
    const calm = status.state === 'idle';
    this.item.text = `${ICONS[status.state] ?? ''} AccelOpt${calm ? '' : `: ${status.message}`}`;
    const target = status.target && vscode.l10n.t('Target: {0}', status.target);
    this.item.tooltip = [status.message, status.detail, target].filter(Boolean).join('\n');
    this.item.backgroundColor = this.shown.state in MENDS ? WARNING : undefined;
  }

  dispose(): void {
    this.item.dispose();
    this.listening.dispose();
    this.changed.dispose();
  }
}
