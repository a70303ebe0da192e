// The language server's life: started, restarted when asked (requests that come meanwhile become one), stopped.
import * as vscode from 'vscode';
import {
  LanguageClient, RevealOutputChannelOn, State, TransportKind, type LanguageClientOptions, type ServerOptions,
} from 'vscode-languageclient/node';
import { findServer, offerEnvironment } from './environment';
import { suggestionMiddleware } from './middleware';
import { complete, lendsModels } from './models';
import { showPage } from './page';
import { serverEnvironment } from './secrets';
import type { StatusItem } from './status';

export class Server implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private starting: Promise<void> | undefined;
  private again = false;
  private offering = false;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly output: vscode.LogOutputChannel,
    private readonly status: StatusItem,
  ) {}

  async restart(): Promise<void> {
    this.again = true;
    this.starting ??= this.restartWhileAsked().finally(() => (this.starting = undefined));
    await this.starting;
  }

  async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    if (client && client.state !== State.Stopped) {
      await client.stop(5000).catch((error: unknown) => this.output.warn(`The server did not stop: ${error}`));
    }
  }

  dispose(): void {
    void this.stop();
  }

  /** Call a server command by its name after `accelopt.server.`. */
  async execute<T>(name: string, argument: object): Promise<T | undefined> {
    if (!this.client?.isRunning()) {
      void vscode.window.showWarningMessage('The AccelOpt server is not running. See its output for the reason.');
      return undefined;
    }
    return this.client.sendRequest<T>('workspace/executeCommand', { command: `accelopt.server.${name}`, arguments: [argument] });
  }

  async onActiveFile(name: string, more: object = {}): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (editor?.document.languageId === 'python') {
      await this.execute(name, { uri: editor.document.uri.toString(), line: editor.selection.active.line + 1, ...more });
    }
  }

  private async restartWhileAsked(): Promise<void> {
    while (this.again) {
      this.again = false;
      await this.stop();
      await this.start();
    }
  }

  private async start(): Promise<void> {
    this.status.show({ state: 'starting', message: 'Starting' });
    try {
      const found = await findServer(this.context);
      if (!found) {
        this.status.show({ state: 'stopped', message: 'Not installed', detail: 'Set accelopt.interpreter, or restart to install.' });
        void this.offer();
        return;
      }
      this.output.info(`Server: ${found.command} ${found.args.join(' ')} (${found.why})`);
      const client = new LanguageClient('accelopt', 'AccelOpt', executable(found, await serverEnvironment(this.context)), this.options());
      client.onNotification('accelopt/status', (shown) => this.status.show(shown));
      client.onNotification('accelopt/show', showPage);
      client.onRequest('accelopt/model/complete', complete);
      this.client = client;
      await client.start();
    } catch (error) {
      this.output.error(`The server could not be started: ${error}`);
      this.status.show({ state: 'stopped', message: 'Not running', detail: String(error) });
    }
  }

  /** Offer to install the server; a restart in the meantime does not wait for the answer. */
  private async offer(): Promise<void> {
    if (this.offering) {
      return;
    }
    this.offering = true;
    try {
      if (await offerEnvironment(this.context, this.output)) {
        await this.restart();
      }
    } catch (error) {
      this.output.error(`The server could not be installed: ${error}`);
      void vscode.window.showErrorMessage('AccelOpt: the server could not be installed; the output has the reason.');
    } finally {
      this.offering = false;
    }
  }

  private options(): LanguageClientOptions {
    return {
      documentSelector: [{ scheme: 'file', language: 'python' }],
      outputChannel: this.output,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationOptions: {
        trusted: vscode.workspace.isTrusted,
        status: true,
        pages: true,
        languageModels: lendsModels(),
        clientCommands: ['accelopt.showSuggestion'],
        settings: vscode.workspace.getConfiguration('accelopt').get('settings', {}),
      },
      middleware: suggestionMiddleware,
    };
  }
}

function executable(found: { command: string; args: string[] }, env: NodeJS.ProcessEnv): ServerOptions {
  return { command: found.command, args: found.args, transport: TransportKind.stdio, options: { env } };
}
