// The schema of `accelopt.settings` in package.json, from the server's own list of settings: what the editor completes,
// explains and checks. `node settings.mjs` writes it; a test compares.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const listed = path.join(here, '../accelopt_lsp/accelopt_lsp/settings/schema.json');
const manifest = path.join(here, 'package.json');

/** `target.triton` becomes a property of a property; `NAME` stands for whatever name a person gives. */
export function settingsSchema() {
  const root = { properties: {}, additionalProperties: false };
  for (const setting of JSON.parse(fs.readFileSync(listed, 'utf8')).settings) {
    const names = setting.name.split('.');
    const last = names.pop();
    let table = root;
    for (const name of names) {
      const inner = { type: 'object', properties: {}, additionalProperties: false };
      if (name === 'NAME') {
        table = typeof table.additionalProperties === 'object' ? table.additionalProperties : (table.additionalProperties = inner);
      } else {
        table = table.properties[name] ??= inner;
      }
    }
    const { minimum, maximum, choices, about } = setting;
    const type = { table: 'object', problem: ['string', 'object'] }[setting.type] ?? setting.type;
    const pattern = setting.pattern && `^(${setting.pattern})${setting.default === '' ? '?' : ''}$`;
    table.properties[last] = { type, minimum, maximum, enum: choices, pattern, markdownDescription: about };
  }
  return JSON.parse(JSON.stringify(root));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const text = JSON.parse(fs.readFileSync(manifest, 'utf8'));
  Object.assign(text.contributes.configuration.properties['accelopt.settings'], settingsSchema());
  fs.writeFileSync(manifest, JSON.stringify(text, null, 2) + '\n');
}
