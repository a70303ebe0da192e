// The panel with the charts of a kernel: bars lead to lines, the cursor's line is lit, a save adds to the history.
// usage: node pictures.mjs URL SCREENSHOTS
import { drive } from './page.mjs';

const [url, shots] = process.argv.slice(2);

await drive(url, shots, async ({ page, seen, mark, shot, lens, openFile, command, preview, settled, toast, until }) => {
  const errors = [];
  page.on('console', (message) => message.text().includes('Content Security Policy') && errors.push(message.text()));
  const at = (line) => page.locator('.statusbar-item', { hasText: `Ln ${line},` }).waitFor();
  const source = (text) => page.locator('.view-line', { hasText: text }).first();
  await openFile('nki_silu.py');
  const stubs = toast(/imports NKI, which is not installed/); // it hides itself after a while
  await stubs.waitFor({ timeout: 240_000 });
  await settled(stubs);
  await shot('10-stubs-offered');
  await stubs.locator('.monaco-button', { hasText: 'No' }).click();
  mark('stubs offered');
  await lens(/est\./).waitFor({ timeout: 240_000 });

  const roofline = page.locator('.monaco-hover img[src^="data:image/svg+xml"]');
  const hover = async (name) => {
    await page.mouse.move(5, 5);
    await source(/def\s/).getByText('silu').hover();
    await roofline.waitFor();
    await shot(name);
    return roofline.evaluate((image) => [image.naturalWidth, image.naturalHeight, image.getBoundingClientRect().width]);
  };
  seen.image = await hover('10-hover-dark');
  await page.keyboard.press('Escape');
  await command('Preferences: Toggle between Light/Dark Themes');
  await page.locator('.monaco-workbench.vs').waitFor();
  await hover('10-hover-light');
  await page.keyboard.press('Escape');
  await command('Preferences: Toggle between Light/Dark Themes');
  await page.locator('.monaco-workbench.vs-dark').waitFor();
  mark('hover');

  await until(() => lens(/est\./).click({ timeout: 4000 }), '.quick-input-list .monaco-list-row >> text=Profile This File Again');
  await page.locator('.quick-input-list .monaco-list-row', { hasText: 'trn2' }).waitFor({ timeout: 240_000 });
  seen.costs = await page.locator('.quick-input-list .monaco-list-row').allInnerTexts();
  await shot('10-costs');
  await page.keyboard.press('Escape');
  mark('costs');
  await source(/def\s/).click();
  await command('AccelOpt: Show Pictures of the Kernel at the Cursor');
  await preview.locator('#chart-roofline svg').waitFor();
  mark('panel');
  await preview.locator('#chart-engines svg').waitFor({ timeout: 240_000 });
  mark('engines');
  seen.titles = await preview.locator('h2').allInnerTexts();
  seen.note = await preview.locator('#page > p').first().innerText();

  await preview.locator('#chart-lines .mark-rect path').nth(1).click();
  await at(19);
  await preview.locator('tr[aria-current][data-line="19"]').first().waitFor({ state: 'attached' });
  await preview.locator('#chart-engines .mark-rect path').first().scrollIntoViewIfNeeded();
  await shot('10-pictures-dark');

  await source('nl.divide').click();
  await preview.locator('tr[aria-current][data-line="22"]').first().waitFor({ state: 'attached' });
  seen.lit = await preview.locator('#chart-lines .mark-rect path').evaluateAll((bars) => bars.map((bar) => getComputedStyle(bar).stroke));
  await preview.locator('#table-lines summary').click();
  const button = preview.locator('#table-lines button', { hasText: '23' });
  await button.focus();
  await page.keyboard.press('Enter');
  await at(23);
  seen.labels = await preview.locator('[id^=chart-][aria-label]').evaluateAll((charts) => charts.map((chart) => chart.getAttribute('aria-label')));
  mark('lines both ways');

  await source('nl.divide').click();
  await page.keyboard.press('End');
  await page.keyboard.press('Enter');
  await page.keyboard.type('twice = nl.add(result, 0.0)');
  await page.keyboard.press('Control+s');
  await preview.locator('#chart-history svg').waitFor({ timeout: 240_000 });
  seen.history = await preview.locator('#table-history tr').count() - 1;
  await preview.locator('#chart-engines svg').waitFor({ timeout: 240_000 });
  mark('history');
  await command('Preferences: Toggle between Light/Dark Themes');
  await page.waitForTimeout(1500);
  await shot('10-pictures-light');
  await preview.locator('#chart-history').scrollIntoViewIfNeeded();
  await shot('10-pictures-light-end');
  seen.errors = errors;
});
