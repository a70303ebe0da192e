// The guide, the doctor, hosts and models: steps tick by what is true, and each answer is tried at once.
import assert from 'node:assert';
import fs from 'node:fs';
import { before, beforeEach, test } from 'node:test';
import { load } from './load.mjs';

let doctor, guide, hosts, models, targets, vscode, asked, answers, secrets;
const manifest = JSON.parse(fs.readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const context = { extension: { packageJSON: manifest }, secrets: {
  store: async (name, key) => { secrets[name] = key; }, delete: async (name) => { delete secrets[name]; },
} };
const server = {
  isRunning: true,
  restart: async () => asked.push('restart'),
  execute: async (name, argument) => { asked.push([name, argument]); return answers[name]; },
};

before(async () => ({ module: { doctor, guide, hosts, models, targets }, vscode } = await load('doctor', 'guide', 'hosts', 'models', 'targets')));
beforeEach(() => {
  vscode.begin();
  [asked, answers, secrets] = [[], {}, {}];
});

test('a step ticks by what the server says, never by a click', () => {
  guide.tick({ state: 'not-installed' });
  assert.deepEqual(vscode.person.context, {});
  guide.tick({ state: 'stopped' });
  assert.deepEqual(Object.keys(vscode.person.context), ['accelopt.reached.python']);
  guide.tick({ state: 'idle', reached: ['profiled'] });
  assert.ok(Object.values(vscode.person.context).every((value) => value));
  assert.deepEqual(Object.keys(vscode.person.context).sort(), ['profiled', 'python', 'server'].map((step) => `accelopt.reached.${step}`));
});

test('a target is chosen among those of its kind of kernel', async () => {
  vscode.person.answers = [/trn3/];
  await guide.chooseTarget(context);
  assert.deepEqual(vscode.person.settings, { 'accelopt.target.nki': 'trn3' });
});

test('a kernel\'s numbers lead to its cost on each target, one of which is taken', async () => {
  const costs = [{ target: 'trn2', time: 'est. 2-3 us', bound: 'DMA' }, { target: 'trn1', time: 'est. 4-5 us', bound: '' }];
  answers.targetCosts = { kernel: 'silu', dialect: 'nki', target: 'trn1', costs };
  const shown = targets.showCosts(server, { uri: 'file:///k.py', kernel: 'silu' });
  const [list] = vscode.person.picks;
  assert.deepEqual([list.items.length, list.busy], [1, true]);
  await shown;
  assert.deepEqual([list.items.length, list.busy], [3, false]);
  assert.deepEqual(list.items.slice(0, 2).map(({ label, description }) => [label, description]), [['trn2', 'est. 2-3 us · DMA'], ['$(check) trn1', 'est. 4-5 us']]);
  list.selectedItems = [list.items[0]];
  list.accept();
  await Promise.resolve();
  assert.deepEqual(vscode.person.settings, { 'accelopt.target.nki': 'trn2' });
  list.selectedItems = [list.items[2]];
  list.accept();
  assert.deepEqual(asked.at(-1), ['profile', { uri: 'file:///k.py' }]);
});

test('the doctor lists what is broken first, and mends what it can', async () => {
  answers.doctor = { checks: [
    { name: 'Python', state: 'ok', found: '3.12', fix: '' },
    { name: 'torch', state: 'absent', found: 'not installed', fix: 'For Triton kernels' },
    { name: 'memory', state: 'broken', found: 'unreadable', fix: '' },
  ] };
  vscode.person.answers = [/torch/];
  await doctor.showDoctor(server);
  assert.deepEqual(vscode.person.picks[0].items.map(({ label }) => label.split(' ')[1]), ['memory', 'torch', 'Python']);
  assert.deepEqual(vscode.person.ran, [['accelopt.installTorch']]);
});

test('hosts are those that a configuration of SSH names', () => {
  assert.deepEqual(hosts.hostNames('Host lab gpu-1\n  HostName 10.0.0.1\nHost *\nhost = trn?\nHost me !you\n'), ['lab', 'gpu-1', 'me']);
});

test('a host is asked at once, and used where the person says so', async () => {
  vscode.person.settings = { 'accelopt.hosts': { old: { ssh: 'old' } } };
  vscode.person.answers = [/user@host/, 'me@lab.org', '/opt/python', 'Run Kernels There'];
  answers.testHost = { reachable: true, error: '', python: '3.11', versions: { torch: '2.13' }, devices: ['H100'] };
  await hosts.addHost(server);
  assert.deepEqual(asked, [['testHost', { id: 'lab.org' }]]);
  assert.match(vscode.person.said[0].message, /torch 2.13, H100/);
  assert.deepEqual(vscode.person.settings, {
    'accelopt.hosts': { old: { ssh: 'old' }, 'lab.org': { ssh: 'me@lab.org', python: '/opt/python' } }, 'accelopt.host': 'lab.org',
  });
});

test('a host that cannot be used says why, and can be removed', async () => {
  vscode.person.answers = [/user@host/, 'lab', 'python3', 'Remove It'];
  answers.testHost = { reachable: false, error: 'Connection refused', python: '', versions: {}, devices: [] };
  await hosts.addHost(server);
  assert.match(vscode.person.said[0].message, /Connection refused/);
  assert.deepEqual(vscode.person.settings, { 'accelopt.hosts': undefined });
});

test('a model is asked one question, its key in the secret storage, its price in the settings', async () => {
  vscode.person.answers = [/of your own/, 'https://models.org/v1', 'coder', 'secret', '0.2', '0.8'];
  answers.testModel = { answer: 'ready', fault: '' };
  await models.addModel(context, server);
  assert.deepEqual(asked, ['restart', ['testModel', {}]]);
  assert.deepEqual(secrets, { 'accelopt.model.key': 'secret' });
  assert.deepEqual(vscode.person.settings, {
    'accelopt.model.base_url': 'https://models.org/v1', 'accelopt.model.model': 'coder',
    'accelopt.model.price_in': 0.2, 'accelopt.model.price_out': 0.8,
  });
  assert.match(vscode.person.said.at(-1).message, /coder answers/);
});

test('a model that does not answer says why', async () => {
  vscode.person.answers = [/of your own/, 'https://models.org/v1', 'coder', '', '0', '0'];
  answers.testModel = { answer: '', fault: 'It refuses the key.' };
  await models.addModel(context, server);
  assert.match(vscode.person.said[0].message, /refuses the key/);
});
