// The pictures of the page of screenshots: six kernels of others as they open, then one search from start to undo.
// usage: node screenshots.mjs URL FOLDER WIDTH KERNELS (JSON: [{file, kernel}, ...]) SEARCHED (JSON: {file, kernel})
import { drive, textOf } from './page.mjs';

const [url, shots, width, files, searched] = process.argv.slice(2);

await drive(url, shots, async ({ page, seen, mark, shot, settled, lens, command, toast, until, showBest, preview }) => {
  const quiet = () => command('Notifications: Clear All Notifications');
  const open = async ({ file, kernel }) => {
    await page.keyboard.press('Control+p');
    await page.locator('.quick-input-widget input').first().fill(file);
    await page.locator('.quick-input-list .monaco-list-row', { hasText: file.split('/').pop() }).first().waitFor();
    await page.keyboard.press('Enter');
    await page.waitForSelector(`.tabs-container .tab.active >> text=${file.split('/').pop()}`);
    await lens(/est\.|not measured/).waitFor({ timeout: 200_000 });
    await page.waitForFunction(() => !document.querySelector('.codelens-decoration')?.textContent.match(/profiling|checking/), undefined, { timeout: 200_000 });
    await page.keyboard.press('Control+f'); // as a person finds a function: its line in the middle, the caret on its name
    await page.locator('.find-widget textarea, .find-widget .inputarea').first().fill(`def ${kernel}`);
    await page.keyboard.press('Enter');
    await page.keyboard.press('Escape');
    await page.waitForTimeout(700);
  };
  const leave = () => page.mouse.move(Number(width) - 20, 500);
  await page.waitForSelector('.explorer-folders-view .monaco-list-row', { timeout: 90_000 });

  for (const [number, one] of JSON.parse(files).entries()) {
    const name = `${number + 1}-${one.kernel}`;
    await command('View: Close All Editors');
    await open(one);
    await quiet();
    await page.keyboard.press('Home');
    await leave();
    await page.waitForTimeout(500);
    seen[name] = await textOf(lens(/est\.|not measured/));
    await shot(`numbers-${name}`);
    await open(one);
    await command('Show or Focus Hover');
    await page.locator('.monaco-hover:not(.hidden) .hover-contents, .monaco-hover .hover-row').first().waitFor();
    await page.waitForTimeout(500);
    await shot(`hover-${name}`);
    await page.keyboard.press('Escape');
    await command('Problems: Focus on Problems View');
    await page.waitForTimeout(700);
    await shot(`findings-${name}`);
    await page.keyboard.press('Control+j');
    mark(name);
  }

  const one = JSON.parse(searched);
  const tab = () => page.locator('.tabs-container .tab', { hasText: one.file.split('/').pop() }).first().click();
  await command('View: Close All Editors');
  await open(one);
  await quiet();
  await until(() => command('AccelOpt: Optimize the Kernel at the Cursor'), '.statusbar-item >> text=/Optimizing/');
  await page.locator('.statusbar-item', { hasText: /[1-9]\d* of \d+ tried/ }).waitFor({ timeout: 200_000 });
  await leave();
  await shot('search');
  await lens(/\d checked:/).waitFor({ timeout: 240_000 });
  mark('first version');
  await shot('search-first-version');
  await lens(/Cancel/).waitFor({ state: 'detached', timeout: 240_000 });
  await page.waitForTimeout(800);
  await shot('search-ended');
  mark('search ended');

  await quiet();
  await showBest();
  const review = page.locator('.review-widget');
  await settled(review);
  await page.waitForTimeout(800);
  await shot('review');
  await page.locator('.activitybar .action-item a[aria-label^="AccelOpt"]').click();
  const rows = page.locator('.pane-body .monaco-list-row', { hasText: 'est.' });
  await rows.first().waitFor();
  seen.listed = await rows.allInnerTexts();
  await page.waitForTimeout(500);
  await shot('tree');
  await page.click('.editor-actions a[aria-label^="Explain This Version"]');
  await preview.locator('h1').first().waitFor();
  await page.waitForTimeout(800);
  await shot('explain');

  await tab();
  await page.locator('.view-line', { hasText: /def\s/ }).filter({ hasText: one.kernel }).first().click();
  await page.keyboard.press('End');
  await page.keyboard.press('Enter');
  await page.keyboard.type('x = x');
  await page.locator('.pane-body .monaco-list-row', { hasText: 'outdated' }).first().waitFor();
  await page.waitForTimeout(1500); // the lens is drawn anew
  await shot('outdated');
  await page.locator('.tabs-container .tab', { hasText: /: .*x est\./ }).first().click();
  await page.locator('.review-widget', { hasText: 'cannot be accepted' }).waitFor();
  await page.waitForTimeout(500);
  await shot('outdated-diff');
  await tab();
  for (let i = 0; i < 8 && (await page.locator('.pane-body .monaco-list-row', { hasText: 'outdated' }).count()); i++) {
    await page.keyboard.press('Control+z');
    await page.waitForTimeout(400);
  }
  await page.locator('.activitybar .action-item a[aria-label^="Explorer"]').click();
  await page.locator('.tabs-container .tab', { hasText: /: .*x est\./ }).first().click();
  await review.locator('a', { hasText: 'Accept' }).click();
  await page.waitForSelector('.monaco-diff-editor', { state: 'detached', timeout: 60_000 });
  await settled(toast(/Accepted for/));
  await page.waitForTimeout(1500); // the lens is drawn anew
  await shot('accept');
  await toast(/Accepted for/).locator('.monaco-button', { hasText: 'Undo' }).click();
  await lens(/\d checked:/).waitFor();
  await page.waitForTimeout(1500);
  await shot('undo');
  mark('accepted and undone');
  await quiet();

  await command('AccelOpt: Show Pictures of the Kernel at the Cursor');
  await preview.locator('#chart-roofline svg').waitFor();
  await preview.locator('#chart-engines svg').waitFor({ timeout: 200_000 });
  await page.waitForTimeout(1000);
  await shot('panel');
  await command('View: Close Editor');
  await command('Preferences: Open Settings (UI)');
  await page.locator('.settings-editor .suggest-input-container .monaco-editor').first().click();
  await page.keyboard.type('@ext:accelopt.accelopt');
  await page.waitForTimeout(2500);
  await shot('settings');
  mark('settings');
}, { width: Number(width), height: 900 });
