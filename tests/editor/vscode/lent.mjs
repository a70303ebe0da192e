// A model that another extension lends: chosen from the editor's, asked after a click with the person's consent, its
// version checked, offered and explained; on the way the search is paused and interrupted by a restart, and goes on.
// usage: node lent.mjs URL SCREENSHOTS
import { drive, textOf } from './page.mjs';

const [url, shots] = process.argv.slice(2);

await drive(url, shots, async ({ page, seen, mark, shot, settled, lens, openFile, command, answer, choose, toast, until, preview, status }) => {
  await page.waitForSelector('.explorer-folders-view .monaco-list-row >> text=double.py', { timeout: 60_000 });
  await openFile('double.py');
  await lens(/est\./).waitFor({ timeout: 180_000 });
  mark('lens');

  await command('AccelOpt: Choose One of the Editor\'s Models...');
  await page.locator('.quick-input-list .monaco-list-row', { hasText: 'toy/parrot' }).waitFor();
  await shot('9-models');
  await choose('Tidy');

  await page.locator('.view-line', { hasText: /def\s/ }).filter({ hasText: 'double' }).first().click();
  await command('AccelOpt: Optimize with Instructions...');
  await answer('What the model should try', 'leave out what adds zero');
  const question = toast(/be sent to toy\/tidy of this editor/);
  await settled(question);
  seen.question = await question.innerText();
  await page.locator('.statusbar-item', { hasText: 'waiting for your answer' }).waitFor();
  mark('asked for consent');
  await shot('10-consent');
  await question.locator('.monaco-button', { hasText: 'Send it from now on' }).click();

  await page.locator('.statusbar-item', { hasText: /[1-9]\d* of \d+ tried/ }).waitFor({ timeout: 120_000 });
  await until(() => lens(/Pause the search/).click({ timeout: 4000 }), '.codelens-decoration a >> text=Resume the search');
  mark('paused');
  await status(/paused/).click();
  await page.locator('.quick-input-list .monaco-list-row', { hasText: 'Resume: Optimizing double' }).waitFor();
  await shot('11-paused');
  await page.keyboard.press('Escape');

  await command('AccelOpt: Restart the Server');
  await lens(/Resume \(\d/).waitFor({ timeout: 120_000 });
  seen.interrupted = await textOf(lens(/Resume \(\d/));
  mark('interrupted');
  await shot('11-interrupted');
  await until(() => lens(/Resume \(\d/).click({ timeout: 4000 }), '.statusbar-item >> text=Optimizing double');
  mark('goes on');

  const end = toast(/candidates/);
  await end.waitFor({ timeout: 240_000 });
  await settled(end);
  seen.end = await end.innerText();
  seen.lens = await textOf(lens(/\d checked:/));
  mark('search ended');
  await shot('12-ended');

  await command('AccelOpt: Show the Faster Versions of the Kernel');
  await page.locator('.quick-input-list .monaco-list-row', { hasText: 'est.' }).first().waitFor();
  seen.versions = await page.locator('.quick-input-list .monaco-list-row').allInnerTexts();
  await shot('13-versions');
  await choose('toy/tidy');
  await page.waitForSelector('.monaco-diff-editor');

  await page.click('.editor-actions a[aria-label^="Explain This Version"]');
  await preview.locator('strong', { hasText: 'Written by the model toy/tidy' }).waitFor({ timeout: 60_000 });
  seen.explanation = (await preview.locator('body').innerText()).replaceAll('\u00a0', ' ');
  mark('explanation');
  await shot('14-lent-explanation');

  await page.locator('.tabs-container .tab', { hasText: 'double.py' }).click();
  await command('AccelOpt: Show the Searches in This File');
  await preview.locator('h1', { hasText: 'double.py' }).waitFor({ timeout: 60_000 });
  seen.searches = (await preview.locator('body').innerText()).replaceAll('\u00a0', ' ');
  await shot('15-searches');
});
