// Drives a VS Code workbench the way a person would: open, save, read the lens and the diagnostic, optimize, look at
// the diff, accept, save. Prints one JSON object with what was seen; exits with 1 when a step did not happen.
// usage: node drive.mjs URL SCREENSHOTS     (PLAYWRIGHT: folder of playwright-core, CHROMIUM: the browser)
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';

const require = createRequire(path.join(process.env.PLAYWRIGHT, 'package.json'));
const { chromium } = require('playwright-core');
const [url, shots] = process.argv.slice(2);
const QUIET = ['--disable-gpu', '--disable-quic', '--no-first-run', '--no-sandbox', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];

const seen = { times: {}, outside: [] };
const started = Date.now();
const mark = (step) => {
  seen.times[step] = (Date.now() - started) / 1000;
  console.error(`${seen.times[step].toFixed(1)} s  ${step}`);
};

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', headless: true, args: QUIET });
const context = await browser.newContext({ viewport: { width: 1500, height: 950 } });
const page = await context.newPage();
page.on('request', (request) => {
  const to = new URL(request.url());
  if (to.protocol.startsWith('http') && !['127.0.0.1', 'localhost'].includes(to.hostname)) seen.outside.push(to.host);
});

const shot = (name) => page.screenshot({ path: path.join(shots, `${name}.png`) });
const lens = (text) => page.locator('.codelens-decoration a, .codelens-decoration span', { hasText: text }).first();
const textOf = async (locator) => (await locator.textContent())?.replaceAll('\u00a0', ' ') ?? '';

async function openFile(name) {
  await page.dblclick(`.explorer-folders-view .monaco-list-row >> text=${name}`);
  await page.waitForSelector(`.tabs-container .tab.active >> text=${name}`);
  await page.waitForSelector('.monaco-editor .view-lines');
}

async function command(title) {
  await page.keyboard.press('F1');
  await page.waitForSelector('.quick-input-widget input');
  await page.keyboard.type(title, { delay: 5 });
  await page.waitForSelector(`.quick-input-list .monaco-list-row >> text=${title}`);
  await page.keyboard.press('Enter');
}

/** Repeat `attempt` until `arrived` shows up: a view re-rendered under the pointer swallows a click. */
async function until(attempt, arrived, tries = 6) {
  for (let i = 0; i < tries; i++) {
    await attempt().catch(() => {});
    if (await page.waitForSelector(arrived, { timeout: 6000 }).then(() => true, () => false)) return;
  }
  throw new Error(`nothing led to ${arrived}`);
}

let failure;
try {
  await page.goto(url);
  await page.waitForSelector('.explorer-folders-view .monaco-list-row >> text=nki_silu.py', { timeout: 60_000 });
  mark('workbench');

  await openFile('broken.py');
  await page.waitForSelector('.squiggly-error', { timeout: 60_000 });
  mark('diagnostic');
  await shot('1-diagnostic');

  await openFile('nki_silu.py');
  await lens(/us|ms/).waitFor({ timeout: 90_000 });
  await page.keyboard.press('Control+s');
  await lens(/trn1/).waitFor({ timeout: 90_000 });
  seen.lens = await textOf(lens(/trn1/));
  mark('lens');
  await page.waitForSelector('.inline-completion-text, [class*="dyn-rule"], .inlay-hint', { timeout: 5000 }).catch(() => {});
  await shot('2-lens-and-hints');

  await page.locator('.view-line', { hasText: /def\s/ }).filter({ hasText: 'silu' }).first().click();
  await command('AccelOpt: Optimize the Kernel at the Cursor');
  await lens(/proved faster/).waitFor({ timeout: 120_000 });
  mark('suggestion');
  await lens(/cancel/).waitFor({ state: 'detached', timeout: 120_000 });
  seen.offer = await textOf(lens(/proved faster/));
  mark('search ended');
  await shot('3-suggestion');

  await until(() => lens(/proved faster/).click({ timeout: 4000 }), '.monaco-diff-editor');
  await page.waitForFunction(() => document.querySelectorAll('.monaco-diff-editor .view-line').length > 10);
  await page.waitForTimeout(800);
  seen.title = await textOf(page.locator('.tabs-container .tab.active').first());
  mark('diff');
  await shot('4-diff');

  await page.click('.editor-actions a[aria-label^="Accept This Version"]');
  await page.waitForSelector('.monaco-diff-editor', { state: 'detached', timeout: 30_000 });
  await page.waitForSelector('.tabs-container .tab.active >> text=nki_silu.py');
  mark('accepted');
  await page.locator('.view-line').first().click();
  await page.keyboard.press('Control+s');
  await lens(/faster than last save|trn1/).waitFor({ timeout: 90_000 });
  await page.waitForTimeout(3000);
  seen.after = await textOf(lens(/trn1/));
  mark('saved');
  await shot('5-accepted');
} catch (error) {
  failure = error;
  seen.error = String(error);
  await shot('failure').catch(() => {});
}
await browser.close();
fs.writeSync(1, JSON.stringify(seen));
process.exit(failure ? 1 : 0);
