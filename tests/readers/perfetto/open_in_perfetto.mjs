// Opens a trace in Perfetto's own UI, headless and cut off from the outside, asks its engine the given questions and takes a picture.
//
//   node open_in_perfetto.mjs WEB_DIST TRACE OUT.png < queries.json     queries: {"name": "SELECT …", …}
//
// Prints one JSON object: {"answers": {name: [row, …]}, "outside": [address, …], "page_errors": [text, …]}.
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import {createRequire} from 'node:module';

const require = createRequire(path.join(process.env.XPU_NODE_MODULES, 'anchor.js'));
const {chromium} = require('playwright-core');

const [webDist, trace, picture] = process.argv.slice(2);
const queries = JSON.parse(fs.readFileSync(0, 'utf8'));
const kTypes = {'.js': 'text/javascript', '.html': 'text/html', '.css': 'text/css', '.wasm': 'application/wasm',
                '.json': 'application/json', '.svg': 'image/svg+xml', '.woff2': 'font/woff2'};

const traceName = `/${path.basename(trace)}`;
const server = http.createServer((request, response) => {
  const name = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
  const file = name === traceName ? trace : path.join(webDist, name === '/' ? 'index.html' : name);
  if (!fs.existsSync(file) || fs.statSync(file).isDirectory()) {
    response.writeHead(404);
    response.end();
    return;
  }
  response.writeHead(200, {'content-type': kTypes[path.extname(file)] || 'application/octet-stream'});
  fs.createReadStream(file).pipe(response);
});
await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
const origin = `http://127.0.0.1:${server.address().port}`;

const profile = fs.mkdtempSync(path.join(path.dirname(picture), 'chromium-'));
const context = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  headless: true,
  viewport: {width: 1500, height: 800},
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
         '--disable-component-update', '--disable-sync'],
});
const outside = [];
const pageErrors = [];
const answers = {};
try {
  const page = context.pages()[0] || await context.newPage();
  page.setDefaultTimeout(120000);
  await page.route('**/*', (route) => {
    const url = route.request().url();
    if (url.startsWith(origin) || url.startsWith('blob:') || url.startsWith('data:')) return route.continue();
    outside.push(url);
    return route.abort();
  });
  page.on('pageerror', (error) => pageErrors.push(String(error).slice(0, 300)));
  await page.goto(`${origin}/#!/?url=${encodeURIComponent(origin + traceName)}`);
  await page.waitForFunction(() => self.app?.trace?.engine !== undefined, null, {timeout: 120000});
  await page.waitForTimeout(1500);  // The picture only: tracks are drawn a little after the engine answers.
  for (const [name, sql] of Object.entries(queries)) {
    answers[name] = await page.evaluate(async (text) => {
      const result = await self.app.trace.engine.query(text);
      const columns = result.columns();
      const rows = [];
      for (const row = result.iter({}); row.valid(); row.next()) {
        rows.push(Object.fromEntries(columns.map((column) => [column, String(row.get(column))])));
      }
      return rows;
    }, sql);
  }
  // The picture: every row open, around a kernel in the last quarter, with the arrow from its call.
  await page.evaluate(async () => {
    const trace = self.app.trace;
    trace.workspaces.currentWorkspace.flatTracks.forEach((node) => node.expand());
    // In Perfetto's own format a kernel is a stage of the GPU and has no category.
    const kernels = "FROM slice WHERE category = 'kernel' OR id IN (SELECT id FROM gpu_slice)";
    const found = await trace.engine.query(`SELECT id, ts ${kernels} ORDER BY ts LIMIT 1 OFFSET (SELECT count(*) * 3 / 4 ${kernels})`);
    if (found.numRows() === 0) return;
    const {id, ts} = found.firstRow({id: 1, ts: 1n});
    trace.timeline.setViewportTime(ts - 60000n, ts + 140000n);
    trace.selection.selectSqlEvent('slice', Number(id));
  });
  await page.keyboard.press('Control+b');  // without the menu
  await page.waitForTimeout(1500);
  await page.screenshot({path: picture});
} finally {
  await context.close();
  server.close();
  fs.rmSync(profile, {recursive: true, force: true});
}
console.log(JSON.stringify({answers, outside, page_errors: pageErrors}));
