// What the editor's language models may call, and the chat participant: commands of the server, answered as text.
import * as path from 'node:path';
import * as vscode from 'vscode';
import { tools } from '../../accelopt_lsp/accelopt_lsp/actions.json';
import type { Server } from './server';
import type { Versions } from './versions';

interface Input {
  file?: string;
  kernel?: string;
}

interface Costs {
  kernels: { kernel: string; line: number; text: string }[];
  findings: { line: number; code: string; severity: string; message: string }[];
}

/** As much of newer versions of the API as is used; `engines` is older, and forks lack parts. */
interface Tools {
  registerTool?(name: string, tool: object): vscode.Disposable;
}
type Parts = { LanguageModelToolResult: new (parts: unknown[]) => unknown; LanguageModelTextPart: new (text: string) => unknown };

type Answer = (server: Server, input: Input, token: vscode.CancellationToken) => Promise<string>;

/** By the name of a tool, what answers it. */
const ANSWERS: Record<string, Answer> = {
  profile: async (server, input, token) => {
    const uri = await opened(input);
    return (await run(server, 'profile', { uri }, token)) ?? `${await costs(server, uri)}\n\n${await findings(server, uri)}`;
  },
  optimize: async (server, input, token) => {
    const uri = await opened(input);
    return (await run(server, 'optimize', { uri, kernel: input.kernel }, token)) ?? versions(server, uri);
  },
  versions: async (server, input) => versions(server, await opened(input)),
  findings: async (server, input) => findings(server, await opened(input)),
  memory: async (server) => JSON.stringify((await server.execute('pairs', {})) ?? {}),
};

/** Answer a tool. Nothing is opened or run in a workspace that is not trusted, or without a server. */
async function answer(server: Server, name: string, input: Input, token: vscode.CancellationToken): Promise<string> {
  if (!vscode.workspace.isTrusted) {
    return vscode.l10n.t('This workspace is not trusted, so nothing of it is run.');
  }
  return server.isRunning ? ANSWERS[name](server, input, token) : vscode.l10n.t('The AccelOpt server is not running.');
}

/** Register the tools and the chat participant, each where the editor has its API. */
export function registerTools(server: Server): vscode.Disposable[] {
  const registered: vscode.Disposable[] = [];
  const lm = vscode.lm as Tools | undefined;
  const register = lm?.registerTool?.bind(lm);
  if (register) {
    const { LanguageModelToolResult: Result, LanguageModelTextPart: Text } = vscode as unknown as Parts;
    registered.push(...tools.map(({ name, title, asks }) => register(`accelopt_${name}`, {
      prepareInvocation: ({ input }: { input: Input }) => ({
        invocationMessage: title,
        confirmationMessages: asks ? { title, message: [asks, input.file].filter(Boolean).join(' ') } : undefined,
      }),
      invoke: async ({ input }: { input: Input }, token: vscode.CancellationToken) =>
        new Result([new Text(await answer(server, name, input, token))]),
    })));
  }
  if (typeof vscode.chat?.createChatParticipant === 'function') {
    registered.push(vscode.chat.createChatParticipant('accelopt.chat', async ({ command, prompt }, _, stream, token) => {
      if (!command) {
        stream.markdown(tools.map(({ name, title }) => `- \`/${name}\`: ${title}`).join('\n'));
        return;
      }
      const file = prompt.trim() || vscode.window.activeTextEditor?.document.uri.fsPath;
      stream.markdown(`~~~~text\n${await answer(server, command, { file }, token)}\n~~~~`);
    }));
  }
  return registered;
}

/** The address of the file that a tool is about, opened so that the server knows it. Throws where there is none, and
 * where it is neither in a folder of the workspace nor open: what a model names is not trusted by itself. */
async function opened({ file }: Input): Promise<string> {
  const [folder] = vscode.workspace.workspaceFolders ?? [];
  const place = path.resolve(folder?.uri.fsPath ?? '/', file ?? '');
  const uri = vscode.Uri.file(place);
  if (!vscode.workspace.getWorkspaceFolder(uri) && !vscode.workspace.textDocuments.some((known) => known.uri.toString() === uri.toString())) {
    throw new Error(vscode.l10n.t('{0} is not in a folder of this workspace.', place));
  }
  return (await vscode.workspace.openTextDocument(uri)).uri.toString();
}

/** Run a job to its end; it is cancelled with the request. Returns why it did not begin, if it did not. */
async function run(server: Server, name: string, argument: object, token: vscode.CancellationToken): Promise<string | undefined> {
  const { job, message } = (await server.execute<{ job?: string; message?: string }>(name, argument)) ?? {};
  if (!job) {
    return message ?? vscode.l10n.t('The AccelOpt server is not running.');
  }
  const listening = token.onCancellationRequested(() => void server.execute('cancel', { job }));
  await server.ended(job);
  listening.dispose();
  return undefined;
}

async function costs(server: Server, uri: string): Promise<string> {
  const { kernels = [] } = (await server.execute<Partial<Costs>>('costs', { uri })) ?? {};
  return kernels.map(({ line, text }) => `line ${line}: ${text}`).join('\n\n') || vscode.l10n.t('No kernel in this file');
}

async function findings(server: Server, uri: string): Promise<string> {
  const { findings: known = [] } = (await server.execute<Partial<Costs>>('costs', { uri })) ?? {};
  const lines = known.map(({ line, severity, code, message }) => `line ${line}: ${severity} ${code}: ${message}`);
  return lines.join('\n') || vscode.l10n.t('No findings.');
}

async function versions(server: Server, uri: string): Promise<string> {
  const known = (await server.execute<Versions>('versions', { uri }))?.versions ?? [];
  return known.map(({ title, review }) => `${title}\n${review}`).join('\n\n') || vscode.l10n.t('No faster version of this text passed the gate.');
}
