// Opens traces in speedscope, headless and cut off from the outside, and has it export what it has understood, in its own format.
//
//   node open_in_speedscope.mjs OUT_FOLDER TRACE...
//
// Writes OUT_FOLDER/<name of the trace>.speedscope.json and .png. Prints one JSON object:
// {"outside": [address, …], "complaints": {name: [text, …]}, "page_errors": [text, …]}.
import fs from 'node:fs';
import {createRequire} from 'node:module';
import path from 'node:path';

const require = createRequire(path.join(process.env.XPU_NODE_MODULES, 'anchor.js'));
const {chromium} = require('playwright-core');
const page_path = path.join(process.env.XPU_NODE_MODULES, 'speedscope', 'dist', 'release', 'index.html');

const [folder, ...traces] = process.argv.slice(2);
const outside = [];
const complaints = {};
const pageErrors = [];

// A browser without a profile of its own forgets everything at its end.
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync',
         '--use-gl=angle', '--use-angle=swiftshader', '--enable-unsafe-swiftshader', '--allow-file-access-from-files'],
});
try {
  for (const trace of traces) {
    const name = path.basename(trace);
    complaints[name] = [];
    const page = await browser.newPage({viewport: {width: 1200, height: 700}});
    page.setDefaultTimeout(60000);
    await page.route('**/*', (route) => {
      const url = route.request().url();
      if (/^(file|blob|data):/.test(url)) return route.continue();
      outside.push(url);
      return route.abort();
    });
    page.on('pageerror', (error) => pageErrors.push(String(error).slice(0, 300)));
    // Where nesting makes no sense to it, it says so on the console and guesses.
    page.on('console', (message) => {
      const text = message.text();
      if (/Tried to|still open|Failed to|could not/i.test(text) && !/ERR_FILE_NOT_FOUND/.test(text)) complaints[name].push(text.slice(0, 300));
    });
    await page.goto(`file://${page_path}#localProfilePath=none`);
    await page.waitForFunction(() => window.speedscope?.loadFileFromBase64 !== undefined);
    const content = fs.readFileSync(trace).toString('base64');
    await page.evaluate(([file, text]) => window.speedscope.loadFileFromBase64(file, text), [name, content]);
    await page.waitForFunction((file) => document.title.startsWith(file), name);
    const [download] = await Promise.all([page.waitForEvent('download'), page.keyboard.press('Control+s')]);
    await download.saveAs(path.join(folder, `${name}.speedscope.json`));
    await page.screenshot({path: path.join(folder, `${name}.png`)});
    await page.close();
  }
} finally {
  await browser.close();
}
console.log(JSON.stringify({outside, complaints, page_errors: pageErrors}));
