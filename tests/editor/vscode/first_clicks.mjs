// From a machine without the server to an accepted version by the mouse alone, every press counted: from the guide and
// its example. Where KERNEL names a file of the workspace, from that to its first number.
// usage: [KERNEL=file.py] [INSTALL=button] node first_clicks.mjs URL SCREENSHOTS
import { drive, textOf } from './page.mjs';

const [url, shots] = process.argv.slice(2);
const { KERNEL, INSTALL = 'Install the Server Only' } = process.env;

await drive(url, shots, async ({ page, seen, mark, shot, lens, command, toast, until }) => {
  await page.waitForSelector('.activitybar [aria-label^="AccelOpt"]', { timeout: 60_000 }); // its commands are known
  if (!KERNEL) await command('AccelOpt: Open the Guide'); // as VS Code itself does after an installation
  await page.evaluate(() => {
    window.pressed = { mouse: 0, keys: 0 };
    window.addEventListener('mousedown', () => { window.pressed.mouse += 1; }, true);
    window.addEventListener('keydown', () => { window.pressed.keys += 1; }, true);
  });
  Object.assign(seen, { clicks: [], repeated: 0 });
  /** A click that is repeated while nothing came of it: a view re-rendered under the pointer swallows one. */
  const click = async (what, locator, arrived, wait = 60_000) => {
    await locator.waitFor({ timeout: wait });
    seen.clicks.push(what);
    let tries = 0;
    await until(() => (tries++, locator.click({ timeout: 4000 })), arrived);
    seen.repeated += tries - 1;
    mark(what);
  };

  const progress = '.notification-toast >> text=/AccelOpt: installing/';
  if (KERNEL) {
    await click('open the kernel', page.locator('.explorer-folders-view .monaco-list-row', { hasText: KERNEL }).first(), '.monaco-editor .view-lines');
    await click('install', toast(/Install AccelOpt.s server/).getByRole('button', { name: INSTALL }), progress);
  } else {
    await click('install', page.locator('.getting-started-step').getByRole('button', { name: INSTALL }), progress);
    const ready = toast('AccelOpt is installed');
    await ready.waitFor({ timeout: 500_000 });
    await shot('28-installed');
    await click('open an example', ready.getByRole('button', { name: 'Open an Example' }), '.tabs-container .tab.active >> text=nki_silu.py');
  }
  await lens(/est\./).waitFor({ timeout: 500_000 });
  seen.lens = await textOf(lens(/est\./));
  mark('first number');
  if (!KERNEL) await search();
  seen.pressed = await page.evaluate(() => window.pressed);

  async function search() {
    await click('optimize', lens(/Optimize/), '.statusbar-item >> text=/Optimizing/');
    const ended = toast(/best is|candidates? tried/);
    await click('show the best', ended.getByRole('button', { name: 'Show the Best' }), '.monaco-diff-editor', 250_000);
    await shot('29-best');
    await click('accept', page.locator('.editor-actions a[aria-label^="Accept This Version"]'), '.notification-toast >> text=/ccepted/');
  }
});
