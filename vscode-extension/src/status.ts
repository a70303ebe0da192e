// One item in the status bar: what the server is doing, and a click away from its output.
import * as vscode from 'vscode';

export interface Status {
  state: 'idle' | 'profiling' | 'optimizing' | 'paused' | 'host-unreachable' | 'untrusted' | 'starting' | 'stopped';
  message: string;
  detail?: string;
  target?: string;
}

const ICONS: Record<Status['state'], string> = {
  'idle': '$(dashboard)',
  'profiling': '$(sync~spin)',
  'optimizing': '$(sync~spin)',
  'paused': '$(debug-pause)',
  'host-unreachable': '$(debug-disconnect)',
  'untrusted': '$(shield)',
  'starting': '$(sync~spin)',
  'stopped': '$(error)',
};

const WARNING = new vscode.ThemeColor('statusBarItem.warningBackground');

export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem('accelopt.status', vscode.StatusBarAlignment.Right, 90);

  constructor() {
    this.item.name = 'AccelOpt';
    this.item.command = 'accelopt.showOutput';
    this.item.show();
  }

  show(status: Status): void {
    const calm = status.state === 'idle';
    this.item.text = `${ICONS[status.state] ?? ''} AccelOpt${calm ? '' : `: ${status.message}`}`;
    this.item.tooltip = [status.message, status.detail, status.target && `Target: ${status.target}`].filter(Boolean).join('\n');
    this.item.backgroundColor = ['host-unreachable', 'stopped', 'untrusted'].includes(status.state) ? WARNING : undefined;
  }

  dispose(): void {
    this.item.dispose();
  }
}
