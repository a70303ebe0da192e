// The language server's life: started, restarted when asked (requests that come meanwhile become one), stopped.
import * as vscode from 'vscode';
import {
  LanguageClient, RevealOutputChannelOn, State, TransportKind, type LanguageClientOptions, type ServerOptions,
} from 'vscode-languageclient/node';
import { WrongInterpreter, findServer, type FoundServer } from './environment';
import { offerInstallation } from './installation';
import { complete, lendsModels } from './lending';
import { showPage } from './page';
import { chosenPythons } from './python';
import { serverEnvironment } from './secrets';
import { serverSettings } from './settings';
import { MENDS, tell, type Status } from './states';
import type { StatusItem } from './status';

/** How a search ended, and the versions that it checked. */
export interface Ended {
  uri: string;
  kernel: string;
  message: string;
  versions: { id: string; title: string }[];
}

export class Server implements vscode.Disposable {
  private readonly searchEnded = new vscode.EventEmitter<Ended>();
  readonly onSearchEnded = this.searchEnded.event;
  private readonly versions = new vscode.EventEmitter<string>();
  /** Of the document at that address other versions are known, or some of them are outdated. */
  readonly onVersions = this.versions.event;
  private readonly pictures = new vscode.EventEmitter<string>();
  /** More is known of the document at that address, whose charts are shown. */
  readonly onPictures = this.pictures.event;
  private readonly started = new vscode.EventEmitter<void>();
  /** The server runs, started from `program`. */
  readonly onStarted = this.started.event;
  program: FoundServer | undefined;
  private client: LanguageClient | undefined;
  private starting: Promise<void> | undefined;
  private again = false;
  private asked = false;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly output: vscode.LogOutputChannel,
    private readonly status: StatusItem,
  ) {}

  get isRunning(): boolean {
    return this.client?.isRunning() ?? false;
  }

  /** Wait until a job that the status has told of has ended. */
  ended(job: string): Promise<void> {
    return new Promise((resolve) => {
      const runs = ({ jobs = [] }: Status) => jobs.some((one) => one.job === job);
      if (!runs(this.status.shown)) {
        resolve();
        return;
      }
      const listening = this.status.onChanged((shown) => {
        if (!runs(shown)) {
          listening.dispose();
          resolve();
        }
      });
    });
  }

  /** Whether the open document is known to hold no kernel. */
  isPlain(uri: string): boolean {
    return this.status.shown.plain?.includes(uri) ?? false;
  }

  /** Start anew; `asked`: because the person said so, and not because something changed. */
  async restart({ asked = false } = {}): Promise<void> {
    this.again = true;
    this.asked ||= asked;
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
    this.started.dispose();
    this.searchEnded.dispose();
    this.versions.dispose();
    this.pictures.dispose();
    void this.stop();
  }

  /** Call a server command by its name after `accelopt.server.`; the server itself says why it refuses one. */
  async execute<T>(name: string, argument: object): Promise<T | undefined> {
    await this.starting;
    if (!this.client?.isRunning()) {
      const { state, detail } = this.status.shown;
      void tell(state in MENDS ? state : 'stopped', [vscode.l10n.t('The AccelOpt server is not running.'), detail].filter(Boolean).join(' '));
      return undefined;
    }
    return this.client.sendRequest<T>('workspace/executeCommand', { command: `accelopt.server.${name}`, arguments: [argument] });
  }

  private async restartWhileAsked(): Promise<void> {
    while (this.again) {
      this.again = false;
      await this.stop();
      await this.start();
    }
    this.asked = false;
  }

  private async start(): Promise<void> {
    this.status.show({ state: 'starting', message: vscode.l10n.t('Starting') });
    try {
      const found = await findServer(this.context, this.output);
      if (!found) {
        const detail = vscode.l10n.t('No Python of this machine has the AccelOpt server.');
        this.status.show({ state: 'not-installed', message: vscode.l10n.t('Not installed'), detail });
        void (this.asked ? vscode.commands.executeCommand('accelopt.showMenu') : offerInstallation(this.context, this.output));
        return;
      }
      this.output.info(`Server: ${found.command} ${found.args.join(' ')} (${found.why})`);
      const server = executable(found, await serverEnvironment(this.context));
      const client = new LanguageClient('accelopt', 'AccelOpt', server, this.options(await chosenPythons(this.output)));
      client.onNotification('accelopt/status', (shown: Status) => this.status.show(shown));
      client.onNotification('accelopt/show', showPage);
      client.onNotification('accelopt/searchEnded', (ended: Ended) => this.searchEnded.fire(ended));
      client.onNotification('accelopt/versions', ({ uri }: { uri: string }) => this.versions.fire(uri));
      client.onNotification('accelopt/pictures', ({ uri }: { uri: string }) => this.pictures.fire(uri));
      client.onNotification('accelopt/save', ({ uri }: { uri: string }) => void save(uri));
      client.onRequest('accelopt/model/complete', complete);
      client.onDidChangeState(({ newState }) => {
        if (newState === State.Running) {
          this.started.fire(); // also where the client started it again after a crash
        } else if (newState === State.Stopped && this.client === client) {
          this.status.show({ state: 'stopped', message: vscode.l10n.t('Not running'), detail: vscode.l10n.t('The server ended; its output has the reason.') });
        }
      });
      this.client = client;
      this.program = found;
      await client.start();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.output.error(`The server could not be started: ${error}`);
      const state = error instanceof WrongInterpreter ? 'wrong-interpreter' : 'stopped';
      this.status.show({ state, message: vscode.l10n.t('Not running'), detail: reason });
      void tell(state, vscode.l10n.t('AccelOpt could not start its server: {0}', reason));
    }
  }

  private options(pythons: Record<string, string>): LanguageClientOptions {
    return {
      documentSelector: [{ scheme: 'file', language: 'python' }],
      outputChannel: this.output,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationOptions: {
        trusted: vscode.workspace.isTrusted,
        pythons,
        status: true,
        pages: true,
        searchEnded: true,
        save: true,
        versions: true,
        pictures: true,
        hoverPictures: true,
        icons: true,
        languageModels: lendsModels(),
        clientCommands: ['accelopt.showSuggestion', 'accelopt.showVersions', 'accelopt.showCosts'],
        settings: serverSettings(),
      },
      middleware: {
        workspace: { configuration: ({ items }) => items.map(({ section }) => (section === 'accelopt' ? serverSettings() : null)) },
      },
    };
  }
}

async function save(uri: string): Promise<void> {
  const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(uri, true));
  await document.save();
}

function executable(found: { command: string; args: string[] }, env: NodeJS.ProcessEnv): ServerOptions {
  return { command: found.command, args: found.args, transport: TransportKind.stdio, options: { env } };
}
