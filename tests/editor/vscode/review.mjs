// Reviewing a version: what the head of its diff says, the side bar's list, an edit that makes it outdated, accept, undo.
// usage: node review.mjs URL SCREENSHOTS
import { drive, textOf } from './page.mjs';

const [url, shots] = process.argv.slice(2);

await drive(url, shots, async ({ page, seen, mark, shot, settled, lens, openFile, command, toast, showBest }) => {
  await openFile('nki_silu.py');
  await lens(/est\./).waitFor({ timeout: 90_000 });
  seen.before = await textOf(lens(/est\./));
  await page.locator('.view-line', { hasText: /def\s/ }).filter({ hasText: 'silu' }).first().click();
  await command('AccelOpt: Optimize the Kernel at the Cursor');
  await lens(/Cancel/).waitFor({ timeout: 120_000 });
  await lens(/Cancel/).waitFor({ state: 'detached', timeout: 240_000 });
  mark('search ended');

  await showBest();
  const review = page.locator('.review-widget');
  await settled(review);
  seen.review = (await review.innerText()).replaceAll('\u00a0', ' ');
  mark('review');
  await shot('8-review');

  await page.locator('.activitybar .action-item a[aria-label^="AccelOpt"]').click();
  const rows = page.locator('.pane-body .monaco-list-row', { hasText: 'est.' });
  await rows.first().waitFor();
  seen.listed = await rows.allInnerTexts();
  await shot('8-list');

  const toFile = () => page.locator('.tabs-container .tab', { hasText: 'nki_silu.py' }).first().click();
  await toFile();
  await page.locator('.view-line', { hasText: /def\s/ }).filter({ hasText: 'silu' }).first().click();
  await page.keyboard.press('End');
  await page.keyboard.press('Enter');
  await page.keyboard.type('x = x');
  await page.locator('.pane-body .monaco-list-row', { hasText: 'outdated' }).first().waitFor();
  await shot('8-outdated');
  await page.locator('.tabs-container .tab', { hasText: /silu: .*x est\./ }).click();
  await page.locator('.review-widget', { hasText: 'cannot be accepted' }).waitFor();
  seen.outdated = (await review.innerText()).replaceAll('\u00a0', ' ');
  await shot('8-outdated-diff');
  await toFile();
  for (let i = 0; i < 8 && (await page.locator('.pane-body .monaco-list-row', { hasText: 'outdated' }).count()); i++) {
    await page.keyboard.press('Control+z');
    await page.waitForTimeout(400);
  }
  mark('outdated and back');

  await page.locator('.tabs-container .tab', { hasText: /silu: .*x est\./ }).click();
  await review.locator('a', { hasText: 'Accept' }).click();
  await page.waitForSelector('.monaco-diff-editor', { state: 'detached', timeout: 60_000 });
  await lens(/faster than last save/).waitFor();
  seen.accepted = await textOf(lens(/faster than last save/));
  await settled(toast(/Accepted for/));
  mark('accepted');
  await shot('9-accepted');
  await toast(/Accepted for/).locator('.monaco-button', { hasText: 'Undo' }).click();
  await lens(/faster than last save/).waitFor({ state: 'detached' });
  await lens(/\d checked:/).waitFor();
  await page.keyboard.press('Control+s');
  await page.waitForTimeout(3000);
  seen.undone = await textOf(lens(/est\./));
  mark('undone');
  await shot('9-undone');
});
