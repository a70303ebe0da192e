// A person's own change: made, saved, remembered by its code action, seen in the memory and forgotten again. Then an
// accepted version is taken back with Ctrl+Z and a save.
// usage: node memory.mjs URL SCREENSHOTS
import { drive, textOf } from './page.mjs';

const [url, shots] = process.argv.slice(2);

await drive(url, shots, async ({ page, seen, mark, shot, settled, lens, openFile, command, answer, toast, until, preview, showBest }) => {
  const line = (text) => page.locator('.monaco-editor .view-line', { hasText: text }).first();
  await page.waitForSelector('.explorer-folders-view .monaco-list-row >> text=double.py', { timeout: 60_000 });
  await openFile('double.py');
  await lens(/est\./).waitFor({ timeout: 180_000 });
  mark('lens');

  for (const name of ['twice = nl.add(first', 'first = nl.add(once']) {
    await line(name).click();
    await page.keyboard.press('Control+Shift+k');
  }
  await line('result = nl.add(twice').click();
  await page.keyboard.press('End');
  await page.keyboard.press('Shift+Home');
  await page.keyboard.type('result = nl.add(once, 0.0)');
  await page.keyboard.press('Control+s');
  await lens(/faster than last save/).waitFor({ timeout: 120_000 });
  seen.faster = await textOf(lens(/faster than last save/));
  mark('saved the change');
  await line('def double').click();
  await until(() => page.keyboard.press('Control+.'), '.action-widget >> text=Remember this change to double');
  await shot('16-remember');
  await page.locator('.action-widget .monaco-list-row', { hasText: 'Remember this change to double' }).click();
  await settled(toast(/pair/));
  seen.remembered = await toast(/pair/).innerText();
  mark('remembered');

  await command('AccelOpt: Show Remembered Changes');
  await answer('Words to look for', 'double');
  await preview.locator('h1', { hasText: 'double' }).waitFor({ timeout: 60_000 });
  seen.page = (await preview.locator('body').innerText()).replaceAll('\u00a0', ' ');
  await shot('17-memory');
  const id = /pair ([0-9a-z]{6,})/.exec(seen.remembered)[1];
  await page.locator('.tabs-container .tab', { hasText: 'double.py' }).click();
  await command('AccelOpt: Forget a Remembered Change');
  await answer('Its id', id);
  const question = toast(/for good/);
  await settled(question);
  await shot('18-forget');
  await question.locator('.monaco-button', { hasText: 'Forget' }).first().click();
  await settled(toast(/orgot/));
  seen.forgotten = await toast(/orgot/).innerText();
  mark('forgotten');

  await openFile('nki_silu.py');
  await lens(/est\./).waitFor({ timeout: 120_000 });
  const before = await textOf(lens(/est\./));
  await line('def silu').click();
  await command('AccelOpt: Optimize the Kernel at the Cursor');
  await lens(/\d checked:/).waitFor({ timeout: 120_000 });
  await lens(/Cancel/).waitFor({ state: 'detached', timeout: 120_000 });
  await showBest();
  await page.click('.editor-actions a[aria-label^="Accept This Version"]');
  await page.waitForSelector('.monaco-diff-editor', { state: 'detached', timeout: 60_000 });
  await page.waitForSelector('.tabs-container .tab.active >> text=nki_silu.py');
  await page.locator('.view-line').first().click();
  await page.keyboard.press('Control+s');
  await page.waitForFunction(
    (old) => ![...document.querySelectorAll('.codelens-decoration a')].some((a) => a.textContent.replaceAll('\u00a0', ' ').includes(old)),
    before, { timeout: 120_000 });
  mark('accepted');
  await page.keyboard.press('Control+z');
  await page.keyboard.press('Control+s');
  await lens(/2 checked:/).waitFor({ timeout: 120_000 });
  seen.again = await textOf(lens(/\d checked:/));
  await shot('19-undone');
  mark('undone');
});
