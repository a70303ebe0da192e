// The picture of the README: a profiled kernel above, the diff of a version that passed the gate below.
// usage: node picture.mjs URL FOLDER NAME
import { drive } from './page.mjs';

const [url, shots, name] = process.argv.slice(2);

await drive(url, shots, async ({ page, seen, mark, shot, lens, openFile, command, until }) => {
  await page.waitForSelector('.explorer-folders-view .monaco-list-row >> text=silu_and_mul.py', { timeout: 90_000 });
  await openFile('silu_and_mul.py');
  await lens(/est\./).waitFor({ timeout: 120_000 });
  await page.waitForSelector('.squiggly-warning', { timeout: 60_000 });
  mark('profiled');
  await page.locator('.view-line', { hasText: /def\s/ }).filter({ hasText: 'gate_kernel' }).first().click();
  await command('AccelOpt: Optimize the Kernel at the Cursor');
  await lens(/\d checked:/).waitFor({ timeout: 240_000 });
  await lens(/Cancel/).waitFor({ state: 'detached', timeout: 240_000 });
  mark('suggestion');
  await command('Notifications: Clear All Notifications');
  await command('View: Toggle Primary Side Bar Visibility');
  await page.keyboard.press('Control+Home');
  await command('View: Split Editor Down');
  await page.waitForFunction(() => document.querySelectorAll('.editor-group-container').length === 2);
  const below = page.locator('.editor-group-container').nth(1);
  const listed = page.locator('.quick-input-list .monaco-list-row', { hasText: 'est.' }).first();
  await until(async () => {
    await below.locator('.codelens-decoration a', { hasText: /\d checked:/ }).first().click({ timeout: 4000 });
    await listed.waitFor({ timeout: 3000 }).then(() => page.keyboard.press('Enter'), () => undefined); // of several versions
  }, '.monaco-diff-editor');
  await page.waitForFunction(() => document.querySelectorAll('.monaco-diff-editor .view-line').length > 10);
  mark('diff');
  await command('Notifications: Clear All Notifications');
  await page.waitForSelector('.editor-actions a[aria-label^="Accept This Version"]');
  await page.mouse.move(700, 500);
  await page.waitForTimeout(2500);
  seen.lens = await lens(/est\./).textContent();
  await shot(name);
}, { width: 1200, height: 860, scale: 2 });
