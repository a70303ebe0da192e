// A workspace that the person does not trust: nothing of it is run until they do.
// usage: node restricted.mjs URL SCREENSHOTS
import { drive, textOf } from './page.mjs';

const [url, shots] = process.argv.slice(2);

await drive(url, shots, async ({ page, seen, mark, shot, lens, openFile, command }) => {
  await page.waitForSelector('.explorer-folders-view .monaco-list-row >> text=nki_silu.py', { timeout: 60_000 });
  await page.waitForSelector('text=Restricted Mode');
  await openFile('nki_silu.py');
  await lens(/trust/i).waitFor({ timeout: 90_000 });
  seen.lens = await textOf(lens(/trust/i));
  await page.keyboard.press('Control+s');
  await page.waitForTimeout(5000);
  seen.afterSave = await textOf(lens(/silu|trust|us/i));
  mark('restricted');
  await shot('7-restricted');

  await command('Workspaces: Manage Workspace Trust');
  await page.locator('.workspace-trust-buttons-row .monaco-button', { hasText: /^Trust/ }).first().click();
  await page.keyboard.press('Escape');
  await lens(/est\./).waitFor({ timeout: 90_000 });
  seen.trusted = await textOf(lens(/est\./));
  mark('trusted');
  await shot('8-trusted');
});
