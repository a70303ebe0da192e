// The pictures of a machine without the server: the offer, the menu, the guide.
// usage: node screenshots_first_run.mjs URL FOLDER WIDTH FILE
import { drive } from './page.mjs';

const [url, shots, width, file] = process.argv.slice(2);

await drive(url, shots, async ({ page, shot, settled, openFile, command, status, toast }) => {
  await page.waitForSelector('.explorer-folders-view .monaco-list-row', { timeout: 90_000 });
  await openFile(file);
  await settled(toast(/Install AccelOpt.s server/));
  await shot('first-run');
  await command('Notifications: Clear All Notifications');
  await status(/AccelOpt/).click();
  await page.locator('.quick-input-list .monaco-list-row').first().waitFor();
  await shot('first-run-menu');
  await page.keyboard.press('Escape');
  await command('AccelOpt: Open the Guide');
  await page.locator('.getting-started-step').first().waitFor();
  await page.waitForTimeout(800);
  await shot('first-run-guide');
}, { width: Number(width), height: 900 });
