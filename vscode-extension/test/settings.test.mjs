// What a person set reaches the server by name; what nobody set does not, and a remote window's settings open where they count.
import assert from 'node:assert';
import { before, beforeEach, test } from 'node:test';
import { load } from './load.mjs';

let settings, vscode;
before(async () => ({ module: { settings }, vscode } = await load('settings')));
beforeEach(() => vscode.begin());

test('only what was set is sent, tables whole', () => {
  vscode.person.settings = { 'accelopt.target.triton': 'a100', 'accelopt.hosts': { lab: { ssh: 'me@lab' } } };
  vscode.person.project = { 'accelopt.search.candidates': 7 };
  const sent = settings.serverSettings();
  assert.deepEqual(sent.target, { triton: 'a100', nki: null });
  assert.deepEqual(sent.hosts, { lab: { ssh: 'me@lab' } });
  assert.equal(sent.search.candidates, 7);
  assert.deepEqual([sent.model.base_url, sent.model.planner.model, sent.host], [null, null, null]);
});

test('a kept value that the workspace overrides is told', async () => {
  assert.equal(await settings.keep({ host: 'lab' }), true);
  assert.equal(vscode.person.settings['accelopt.host'], 'lab');
  vscode.person.project = { 'accelopt.host': 'local' };
  assert.equal(await settings.keep({ host: 'lab' }), false);
  assert.match(vscode.person.said[0].message, /accelopt.host/);
});

test('settings open on the tab of the machine that they count for', async () => {
  await settings.openSettings('accelopt.host');
  vscode.env.remoteName = 'ssh-remote+lab';
  await settings.openSettings('accelopt.host');
  assert.deepEqual(vscode.person.ran, [
    ['workbench.action.openSettings', { query: 'accelopt.host' }],
    ['workbench.action.openRemoteSettings', { query: 'accelopt.host' }],
  ]);
});
