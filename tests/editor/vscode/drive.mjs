// From opening a kernel to the accepted version on disk, the way a person would: open, save, read the lens and the
// diagnostic, optimize, look at the diff, reject and undo that, accept, save, look into the memory.
// usage: node drive.mjs URL SCREENSHOTS
import { drive, textOf } from './page.mjs';

const [url, shots] = process.argv.slice(2);

await drive(url, shots, async ({ page, seen, mark, shot, settled, lens, openFile, command, answer, choose, toast, until, preview, showBest }) => {
  await page.waitForSelector('.explorer-folders-view .monaco-list-row >> text=nki_silu.py', { timeout: 60_000 });
  mark('workbench');

  await openFile('broken.py');
  await page.waitForSelector('.squiggly-error', { timeout: 60_000 });
  mark('diagnostic');
  await shot('1-diagnostic');

  await openFile('nki_silu.py');
  await lens(/est\./).waitFor({ timeout: 90_000 });
  await page.keyboard.press('Control+s');
  await lens(/est\./).waitFor({ timeout: 90_000 });
  seen.lens = await textOf(lens(/est\./));
  mark('lens');
  await page.waitForSelector('.inline-completion-text, [class*="dyn-rule"], .inlay-hint', { timeout: 5000 }).catch(() => {});
  await shot('2-lens-and-hints');

  await page.locator('.view-line', { hasText: /def\s/ }).filter({ hasText: 'silu' }).first().click();
  await command('AccelOpt: Optimize the Kernel at the Cursor');
  const progress = page.locator('.statusbar-item', { hasText: /Optimizing silu: \d+ of \d+ tried/ });
  await progress.waitFor({ timeout: 120_000 });
  seen.progress = await progress.innerText();
  mark('tried');
  await lens(/\d checked:/).waitFor({ timeout: 120_000 });
  mark('suggestion');
  await shot('3-searching');
  await lens(/Cancel/).waitFor({ state: 'detached', timeout: 120_000 });
  seen.offer = await textOf(lens(/\d checked:/));
  mark('search ended');
  await settled(toast(/silu: \d suggestions/));
  seen.announced = await textOf(toast(/silu: \d suggestions/));
  await shot('3-suggestion');

  await until(() => lens(/\d checked:/).click({ timeout: 4000 }), '.quick-input-list .monaco-list-row');
  await page.locator('.quick-input-list .monaco-list-row', { hasText: 'est.' }).nth(1).waitFor();
  seen.versions = await page.locator('.quick-input-list .monaco-list-row').allInnerTexts();
  await shot('3-versions');
  await page.keyboard.press('Escape');
  await toast(/silu: \d suggestions/).locator('.monaco-button', { hasText: 'Show the Best' }).click();
  await page.waitForSelector('.monaco-diff-editor');
  await page.waitForFunction(() => document.querySelectorAll('.monaco-diff-editor .view-line').length > 10);
  await page.waitForTimeout(800);
  seen.title = await textOf(page.locator('.tabs-container .tab.active').first());
  mark('diff');
  await shot('4-diff');

  await page.click('.editor-actions a[aria-label^="Explain This Version"]');
  await preview.locator('h1', { hasText: /faster on trn1/ }).waitFor({ timeout: 60_000 });
  seen.explanation = (await preview.locator('body').innerText()).replaceAll('\u00a0', ' ');
  mark('explanation');
  await shot('5-explanation');
  await page.locator('.tabs-container .tab', { hasText: /silu: .*x est\./ }).click();
  await page.waitForSelector('.monaco-diff-editor');

  const toFile = () => page.locator('.tabs-container .tab', { hasText: 'nki_silu.py' }).first().click();
  const reject = async (answer) => {
    await page.click('.editor-actions a[aria-label^="Reject This Version"]');
    const question = toast(/is not wanted/);
    await settled(question);
    await shot('5-rejected');
    seen.rejection = await question.innerText();
    await question.locator('.monaco-button', { hasText: answer }).first().click();
    await page.waitForSelector('.monaco-diff-editor', { state: 'detached' });
  };
  const open = async (which) => {
    await until(() => lens(/\d checked:/).click({ timeout: 4000 }), '.quick-input-list .monaco-list-row');
    const rows = page.locator('.quick-input-list .monaco-list-row', { hasText: 'est.' });
    await rows.nth(which).waitFor();
    await rows.nth(which).click();
    await page.waitForSelector('.monaco-diff-editor');
  };
  await reject('Undo');
  await toFile();
  await lens(/\d checked:/).waitFor();
  await open(1);
  await reject('not now');
  await toFile();
  mark('rejected');
  await showBest();

  await page.click('.editor-actions a[aria-label^="Accept This Version"]');
  await page.waitForSelector('.monaco-diff-editor', { state: 'detached', timeout: 60_000 });
  await page.waitForSelector('.tabs-container .tab.active >> text=nki_silu.py');
  mark('accepted');
  await page.locator('.view-line').first().click();
  await page.keyboard.press('Control+s');
  await lens(/est\./).waitFor({ timeout: 90_000 });
  await page.waitForTimeout(3000);
  seen.after = await textOf(lens(/est\./));
  mark('saved');
  await shot('6-accepted');

  const remembered = async (words, title) => {
    await toFile();
    await page.locator('.view-line', { hasText: 'def' }).filter({ hasText: 'silu' }).first().click();
    await command('AccelOpt: Show Remembered Changes');
    await answer('Words to look for', words);
    await preview.locator('h1', { hasText: title }).waitFor({ timeout: 60_000 });
    return (await preview.locator('body').innerText()).replaceAll('\u00a0', ' ');
  };
  seen.alike = await remembered('', 'Remembered changes: silu');
  await shot('7-remembered');
  seen.searched = await remembered('nowhere', 'nowhere');
  mark('looked into the memory');
});
