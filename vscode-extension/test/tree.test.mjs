// The side bar: what a search that runs is doing, with the time it takes, and the versions below it.
import assert from 'node:assert';
import { afterEach, before, beforeEach, test } from 'node:test';
import { load } from './load.mjs';

let tree, vscode, view, asked;
const version = { id: '1', uri: 'file:///k.py', kernel: 'silu', speedup: '1.8x est.', latency: 'est. 5 us', origin: 'rule widen', review: '' };
const server = { isRunning: true, execute: async (name) => (asked.push(name), { versions: [version], outdated: [] }) };
const search = (progress, more = {}) => ({ state: 'optimizing', message: '', jobs: [
  { job: 'a1', kind: 'optimize', title: 'Optimizing silu', started: Date.now() / 1000 - 125, progress, ...more },
  { job: 'b2', kind: 'profile', title: 'Profiling k.py', started: 0 },
] });
const PROGRESS = { budget: 40, tried: 7, best: '', unproved: '2.0x est.', tokens: 12400, doing: 'asking the planner (about 3,200 tokens)' };

before(async () => ({ module: { tree }, vscode } = await load('tree')));
beforeEach(() => {
  vscode.begin();
  asked = [];
  view = new tree.VersionTree(server);
});
afterEach(() => view.dispose());

const rows = async (node) => (await view.getChildren(node)).map((child) => view.getTreeItem(child).label);

test('a search says how long it takes, what it tried, the best so far, whom it asks and the tokens', async () => {
  view.tell(search(PROGRESS));
  const [job, kernel] = await view.getChildren();
  assert.equal(view.getTreeItem(job).label, 'Optimizing silu');
  assert.equal(view.getTreeItem(job).description, '2 min 5 s');
  assert.deepEqual(await rows(job), [
    '7 of 40 tried', 'not proved yet: 2.0x est.', 'asking the planner (about 3,200 tokens)', '12,400 tokens',
  ]);
  assert.deepEqual(await rows(kernel), ['1.8x est.']);
});

test('what moves is the search alone, until others run', () => {
  const fired = [];
  view.onDidChangeTreeData((node) => fired.push(node?.job.progress?.tried));
  view.tell(search(null));
  view.tell(search({ ...PROGRESS, tried: 8, best: '1.8x est.', unproved: '' }));
  view.tell(search(PROGRESS, { paused: true }));
  view.tell({ state: 'idle', message: '' });
  assert.deepEqual(fired, [undefined, 8, 7, undefined]);
});

test('one that rests says so, and one that begins has nothing to tell yet', async () => {
  view.tell(search(null, { paused: true }));
  const [job] = await view.getChildren();
  assert.equal(view.getTreeItem(job).description, 'paused');
  assert.deepEqual(await rows(job), []);
});
