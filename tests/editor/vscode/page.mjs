// A VS Code workbench in headless Chromium, and what a person does in it.
// PLAYWRIGHT: folder of playwright-core, CHROMIUM: the browser.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';

const require = createRequire(path.join(process.env.PLAYWRIGHT, 'package.json'));
const { chromium } = require('playwright-core');
const QUIET = ['--disable-gpu', '--disable-quic', '--no-first-run', '--no-sandbox', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];

/** Stands for files of this machine: VS Code answers it in a worker of the page, no server has the name. */
const RESOURCES = '.vscode-resource.vscode-cdn.net';

/** Run `steps` on the workbench at `url`, print what they saw as one JSON object, and exit: 1 when a step failed. */
export async function drive(url, shots, steps, { width = 1500, height = 950, scale = 1 } = {}) {
  const seen = { times: {}, outside: [] };
  const started = Date.now();
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', headless: true, args: QUIET });
  const context = await browser.newContext({ viewport: { width, height }, deviceScaleFactor: scale });
  const page = await context.newPage();
  page.on('request', async (request) => {
    const to = new URL(request.url());
    if (!to.protocol.startsWith('http') || ['127.0.0.1', 'localhost'].includes(to.hostname)) return;
    const answer = await request.response().catch(() => null);
    if (answer === null && to.hostname.endsWith(RESOURCES)) return; // the preview was closed before its worker answered
    if (!answer?.fromServiceWorker()) seen.outside.push(to.host); // a preview's resources come from its own worker
  });
  const mark = (step) => {
    seen.times[step] = (Date.now() - started) / 1000;
    console.error(`${seen.times[step].toFixed(1)} s  ${step}`);
  };
  const shot = (name) => page.screenshot({ path: path.join(shots, `${name}.png`) });
  let failure;
  try {
    page.setDefaultTimeout(60_000);
    await page.goto(url, { timeout: 120_000 });
    await steps({ page, seen, mark, shot, ...hands(page) });
  } catch (error) {
    failure = error;
    seen.error = String(error);
    seen.status = await page.locator('.statusbar-item', { hasText: 'AccelOpt' }).allTextContents().catch(() => []);
    await shot('failure').catch(() => {});
  }
  await browser.close();
  fs.writeSync(1, JSON.stringify(seen));
  process.exit(failure ? 1 : 0);
}

/** Wait until an element stands where it is: what slides into view is there long before it can be read or clicked. */
async function settled(locator) {
  await locator.waitFor({ timeout: 60_000 });
  const element = await locator.elementHandle();
  await element.waitForElementState('stable');
}

export const textOf = async (locator) => (await locator.textContent())?.replaceAll('\u00a0', ' ') ?? '';

function hands(page) {
  const person = {
    preview: page.frameLocator('iframe.webview').frameLocator('iframe#active-frame'),

    settled,

    status: (text) => page.locator('.statusbar-item', { hasText: 'AccelOpt' }).filter({ hasText: text }).first(),

    toast: (text) => page.locator('.notification-toast', { hasText: text }).first(),

    /** Choose the entry of a list of the editor's that holds `text`. By keys: a hover may cover it. */
    async choose(text) {
      await page.keyboard.type(text, { delay: 5 });
      await page.locator('.quick-input-list .monaco-list-row.focused', { hasText: text }).waitFor();
      await page.keyboard.press('Enter');
      await page.waitForSelector('.quick-input-widget', { state: 'hidden' });
    },

    /** Answer the input box that asks `prompt`. Keys that are pressed before it has the focus would go to the text. */
    async answer(prompt, text) {
      const box = page.locator('.quick-input-widget', { hasText: prompt }).locator('input[type=text]').first();
      await box.fill(text);
      await box.press('Enter');
    },

    lens: (text) => page.locator('.codelens-decoration a, .codelens-decoration span', { hasText: text }).first(),

    /** Open the diff of the best checked version: the lens shows a single one at once, and lists several. */
    async showBest() {
      const listed = '.quick-input-list .monaco-list-row >> text=est.';
      await person.until(() => person.lens(/\d checked:/).click({ timeout: 4000 }), `.monaco-diff-editor, ${listed}`);
      if (await page.locator(listed).first().isVisible()) await page.keyboard.press('Enter');
      await page.waitForSelector('.monaco-diff-editor');
    },

    async openFile(name) {
      await page.dblclick(`.explorer-folders-view .monaco-list-row >> text=${name}`);
      await page.waitForSelector(`.tabs-container .tab.active >> text=${name}`, { timeout: 90_000 });
      await page.waitForSelector('.monaco-editor .view-lines', { timeout: 90_000 });
    },

    async command(title) {
      await page.keyboard.press('F1');
      await page.waitForSelector('.quick-input-widget input');
      await page.keyboard.type(title, { delay: 5 });
      await page.waitForSelector(`.quick-input-list .monaco-list-row >> text=${title}`, { timeout: 60_000 });
      await page.keyboard.press('Enter');
    },

    /** Repeat `attempt` until `arrived` shows up: a view re-rendered under the pointer swallows a click. */
    async until(attempt, arrived, tries = 6) {
      for (let i = 0; i < tries; i++) {
        await attempt().catch(() => {});
        if (await page.waitForSelector(arrived, { timeout: 6000 }).then(() => true, () => false)) return;
      }
      throw new Error(`nothing led to ${arrived}`);
    },
  };
  return person;
}
