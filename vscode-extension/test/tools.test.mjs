// Tools of language models, the chat participant and the server for agents: commands of the server, in trust only.
import assert from 'node:assert';
import fs from 'node:fs';
import { before, beforeEach, test } from 'node:test';
import { load } from './load.mjs';

let agents, environment, tools, vscode, asked, registered, participant, provider;
const { tools: rows } = JSON.parse(fs.readFileSync(new URL('../../accelopt_lsp/accelopt_lsp/actions.json', import.meta.url), 'utf8'));
const token = { onCancellationRequested: (stop) => ((token.stop = stop), { dispose() {} }) };
const ANSWERS = {
  profile: { job: 'p1' },
  optimize: { job: 'o1' },
  costs: { kernels: [{ kernel: 'silu', line: 8, text: 'silu on trn1: est. 5 us' }], findings: [{ line: 9, severity: 'warning', code: 'spills', message: 'It spills.' }] },
  versions: { versions: [{ title: 'silu: 1.8x est.', review: '**5 us** → 3 us' }], outdated: [] },
  pairs: { pairs: [{ id: 'abcd' }] },
};
const server = {
  isRunning: true,
  execute: async (name, argument) => (asked.push([name, argument]), ANSWERS[name]),
  ended: async (job) => asked.push(['ended', job]),
  onStarted: () => {},
};

before(async () => ({ module: { agents, environment, tools }, vscode } = await load('agents', 'environment', 'tools')));
beforeEach(() => {
  vscode.begin();
  [asked, registered] = [[], {}];
  vscode.person.trusted = true;
  vscode.workspace.workspaceFolders = [{ name: 'work', uri: { fsPath: '/work' } }];
  vscode.lm.registerTool = (name, tool) => (registered[name] = tool);
  vscode.chat.createChatParticipant = (_, handler) => (participant = handler);
  vscode.lm.registerMcpServerDefinitionProvider = (_, given) => (provider = given);
  tools.registerTools(server);
});

const invoke = async (name, input) => (await registered[`accelopt_${name}`].invoke({ input }, token)).content[0].value;

test('each row of the table is a tool and a command of the participant, of the manifest too', () => {
  const { languageModelTools, chatParticipants } = JSON.parse(fs.readFileSync(new URL('../package.json', import.meta.url), 'utf8')).contributes;
  const names = rows.map(({ name }) => name);
  assert.deepEqual(Object.keys(registered), names.map((name) => `accelopt_${name}`));
  assert.deepEqual(languageModelTools.map(({ name }) => name), Object.keys(registered));
  assert.deepEqual(chatParticipants[0].commands.map(({ name }) => name), names);
});

test('a profile is waited for, and is then told with the findings', async () => {
  assert.equal(await invoke('profile', { file: 'k.py' }), 'line 8: silu on trn1: est. 5 us\n\nline 9: warning spills: It spills.');
  assert.deepEqual(asked[0], ['profile', { uri: 'file:///work/k.py' }]);
  assert.deepEqual(asked[1], ['ended', 'p1']);
});

test('a search ends with its request, and answers with what passed the gate', async () => {
  assert.match(await invoke('optimize', { file: '/work/k.py', kernel: 'silu' }), /1\.8x est\.\n.*3 us/);
  assert.deepEqual(asked.map(([name]) => name), ['optimize', 'ended', 'versions']);
  token.stop();
  assert.deepEqual(asked.at(-1), ['cancel', { job: 'o1' }]);
});

test('a file outside of the workspace is not opened', async () => {
  vscode.workspace.workspaceFolders = [];
  await assert.rejects(invoke('findings', { file: '/tmp/other.py' }), /^Error: \/tmp\/other.py is not in a folder/);
  assert.deepEqual(asked, []);
});

test('the others run nothing', async () => {
  assert.match(await invoke('versions', { file: 'k.py' }), /1\.8x/);
  assert.equal(await invoke('findings', { file: 'k.py' }), 'line 9: warning spills: It spills.');
  assert.equal(await invoke('memory', {}), '{"pairs":[{"id":"abcd"}]}');
  assert.deepEqual(asked.map(([name]) => name), ['versions', 'costs', 'pairs']);
});

test('what runs something asks first', () => {
  for (const { name, asks } of rows) {
    const { confirmationMessages } = registered[`accelopt_${name}`].prepareInvocation({ input: { file: 'k.py' } });
    assert.equal(confirmationMessages?.message, asks ? `${asks} k.py` : undefined, name);
  }
  assert.deepEqual(rows.filter(({ asks }) => asks).map(({ name }) => name), ['profile', 'optimize']);
});

test('in a workspace that is not trusted nothing is opened, run or offered', async () => {
  vscode.person.trusted = false;
  for (const { name } of rows) assert.match(await invoke(name, { file: 'k.py' }), /not trusted/);
  agents.registerMcp({ ...server, program: { command: '/v/python', args: ['-c', ''] } });
  assert.deepEqual(provider.provideMcpServerDefinitions(), []);
  assert.deepEqual(asked, []);
});

test('a refusal of the server is the answer', async () => {
  const refusing = { ...server, execute: async () => ({ job: null, message: 'There is no kernel.' }) };
  tools.registerTools(refusing);
  assert.equal(await invoke('profile', { file: 'k.py' }), 'There is no kernel.');
});

test('the participant answers about the file in front, as text', async () => {
  vscode.window.activeTextEditor = { document: { uri: { fsPath: '/work/k.py' } } };
  const shown = [];
  await participant({ command: 'findings', prompt: '' }, {}, { markdown: (text) => shown.push(text) }, token);
  assert.match(shown[0], /^~~~~text\nline 9: warning/);
  await participant({ prompt: 'hello' }, {}, { markdown: (text) => shown.push(text) }, token);
  assert.match(shown[1], /`\/profile`/);
});

test('the server for agents comes from where the server does, once for each folder', () => {
  agents.registerMcp({ ...server, program: { command: '/v/python', args: ['-c', ''] } });
  const [definition] = provider.provideMcpServerDefinitions();
  assert.equal(definition.command, '/v/python');
  assert.deepEqual(definition.args.slice(2), ['mcp', '--root', '/work']);
  assert.deepEqual(environment.mcpCommand({ command: 'accelopt-lsp', args: [] }, '/w'), ['accelopt', ['mcp', '--root', '/w']]);
  agents.registerMcp(server);
  assert.deepEqual(provider.provideMcpServerDefinitions(), []);
});

test('an editor that lacks the API gets nothing', () => {
  for (const part of [vscode.lm, vscode.chat]) for (const name of Object.keys(part)) delete part[name];
  assert.deepEqual([...tools.registerTools(server), ...agents.registerMcp(server)], []);
});
