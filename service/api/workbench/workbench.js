// The workbench: a request goes to the service it was loaded from, and what comes back is drawn. It uses the same calls as any client.
"use strict";

const at = (id) => document.getElementById(id);
const state = { key: null, program: null, examples: {} };

// An element with text and children; nothing that came over the network is ever read as HTML.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== false && value !== null) made.setAttribute(key, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

async function call(path, options = {}) {
  const headers = { accept: "application/json, application/problem+json", ...options.headers };
  if (at("token").value) headers.authorization = `Bearer ${at("token").value}`;
  if (options.body) headers["content-type"] = "application/json";
  const response = await fetch(path, { ...options, headers });
  if (response.status === 401) at("token-label").hidden = false;
  const body = await response.json();
  if (!response.ok) throw Object.assign(new Error(body.detail), { problem: body });
  return { body, headers: response.headers };
}

async function busy(button, work) {
  button.disabled = true;
  at("problem").hidden = true;
  try {
    await work();
  } catch (error) {
    show_problem(error);
  } finally {
    button.disabled = false;
  }
}

function show_problem(error) {
  const told = error.problem ?? { title: "The service was not reached", detail: String(error.message ?? error) };
  const rows = ["detail", "pointer", "expected", "got", "limit", "needed", "allowed", "option", "reason", "request_id"]
    .filter((name) => told[name] !== undefined && told[name] !== null && told[name] !== "")
    .map((name) => element("tr", {}, element("th", {}, name), element("td", {}, String(told[name]))));
  const status = told.status ? element("span", { class: "badge bad" }, `${told.status} ${told.category}`) : null;
  at("problem").replaceChildren(element("h2", { class: "bad" }, told.title, " ", status), element("table", {}, rows));
  at("problem").hidden = false;
  at("answer").hidden = true;
  select_place(told.pointer);
}

// Marks the member of the request that a problem points to: the place of its last step after that of all before it.
function select_place(pointer) {
  if (!pointer) return;
  const area = at("request");
  let from = 0;
  let length = 0;
  for (const step of pointer.split("/").slice(1).map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))) {
    if (/^\d+$/.test(step)) {
      for (let i = 0, found = from; i <= Number(step); i++) {
        found = area.value.indexOf("{", found + (i ? 1 : 0));
        if (found < 0) break;
        if (i === Number(step)) { from = found; length = 1; }
        else found = closing(area.value, found);
      }
    } else {
      const found = area.value.indexOf(`"${step}"`, from);
      if (found < 0) break;
      from = found;
      length = step.length + 2;
    }
  }
  area.focus();
  area.setSelectionRange(from, from + length);
}

function closing(text, from) {
  for (let depth = 0, i = from; i < text.length; i++) {
    if (text[i] === "{") depth++;
    if (text[i] === "}" && --depth === 0) return i;
  }
  return from;
}

function edited() {
  const request = JSON.parse(at("request").value);
  return request.nodes ? { ast: request, device: { target: at("target").value } } : request;
}

// The choices above the request are written into it, so that what is sent is what is seen.
function choose() {
  let request;
  try {
    request = edited();
  } catch {
    return;
  }
  request.device = { ...request.device, target: at("target").value };
  request.optimize = at("optimize").value;
  if (at("annotate").checked) request.annotate = true;
  else delete request.annotate;
  at("request").value = written(request);
}

// JSON as people write kernels: what fits on a line stands on one.
function written(value, indent = "") {
  const flat = JSON.stringify(value).replaceAll(/([,:])(?=["\d[{tfn-])/g, "$1 ");
  if (flat.length + indent.length < 96 || value === null || typeof value !== "object") return flat;
  const inner = `${indent}  `;
  const items = Array.isArray(value)
    ? value.map((item) => inner + written(item, inner))
    : Object.entries(value).map(([name, item]) => `${inner}${JSON.stringify(name)}: ${written(item, inner)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return `${open}\n${items.join(",\n")}\n${indent}${close}`;
}

async function compile() {
  const { body, headers } = await call("compile", { method: "POST", body: at("request").value });
  const stages = (headers.get("server-timing") ?? "").split(",").map((part) => part.trim().match(/^([\w-]+);dur=([\d.]+)$/)).filter(Boolean);
  await show(body, headers.get("lathe-result"), stages.map(([, name, ms]) => [name, Number(ms)]));
  history.replaceState(null, "", `#${body.key}`);
}

async function show(program, result, stages) {
  state.key = program.key;
  state.program = program;
  const proofs = Object.entries(program.proofs).filter(([, value]) => typeof value === "string");
  const proved = proofs.every(([, value]) => value === "proved");
  at("facts").replaceChildren(
    element("span", { class: `badge ${result === "compiled" ? "" : "good"}` }, result),
    element("code", {}, program.name),
    element("span", { class: `badge ${proved ? "good" : "soft"}` }, proved ? "proved" : "not all proved"),
    element("a", { href: `program/${program.key}`, title: program.key }, `${program.key.slice(0, 12)}…`),
    element("a", { href: `program/${program.key}/source` }, "source file"),
  );
  const panels = { Source: () => element("pre", {}, program.source), Launch: () => launch(program) };
  if (stages.length) panels.Timing = () => timing(stages);
  for (const [name, draw] of Object.entries({ Axes: axes, Decisions: decisions, "Micro-ops": micro_ops, Proofs: open_proofs, Kernel: kernel, Validations: validations }))
    panels[name] = async () => draw((await call(`program/${program.key}/explain`)).body);
  tabs(panels);
  at("answer").hidden = false;
}

function tabs(panels) {
  const drawn = {};
  const buttons = Object.keys(panels).map((name) => element("button", { role: "tab", "aria-selected": "false", onclick: () => open(name) }, name));
  at("tabs").replaceChildren(...buttons);
  async function open(name) {
    for (const button of buttons) button.setAttribute("aria-selected", String(button.textContent === name));
    try {
      drawn[name] ??= await panels[name]();
      at("panels").replaceChildren(drawn[name]);
    } catch (error) {
      show_problem(error);
    }
  }
  open("Source");
}

function table(heads, rows) {
  const head = element("tr", {}, heads.map((text) => element("th", {}, text)));
  return element("table", {}, element("thead", {}, head), element("tbody", {}, rows.map((row) => element("tr", {}, row.map((cell) => element("td", {}, cell))))));
}

function launch(program) {
  const sizes = (value) => (value === null ? "–" : value.join(" × "));
  const rows = [
    ["global_size", sizes(program.global_size)], ["local_size", sizes(program.local_size)], ["shared_bytes", String(program.shared_bytes)],
    ["flops", String(program.flops)], ["memory_bytes", String(program.memory_bytes)],
    ["applied", program.applied.map((option) => [option.op, option.axis, option.amount].filter((part) => part !== undefined).join(" ")).join(", ") || "none"],
  ];
  const kinds = program.arguments.map((argument, i) => [
    String(i), argument.kind, argument.name ?? `buffer ${argument.index}`, argument.dtype,
    argument.kind === "variable" ? `${argument.min} … ${argument.max}` : `${argument.size} elements`, argument.access ?? "",
  ]);
  return element("div", {}, table(["", ""], rows), element("h2", {}, "Arguments"), table(["", "kind", "name", "dtype", "size", "access"], kinds));
}

function timing(stages) {
  const most = Math.max(...stages.map(([, ms]) => ms), 0.001);
  return table(["stage", "ms", ""], stages.map(([name, ms]) => [name, ms.toFixed(3), element("meter", { max: most, value: ms })]));
}

const spelt = (option) => (option === null ? "as the kernel has them" : [option.op, option.axis, option.amount].filter((part) => part !== undefined).join(" "));

function axes(told) {
  const drawn = (axis, i) => element("span", { class: "axis", title: `from ${JSON.stringify(axis.from)}` }, `${i}: `, element("b", {}, axis.kind), ` ${axis.extent}`);
  return table(["after", "axes"], told.axes.map((step) => [spelt(step.option), element("div", { class: "axes" }, step.axes.map(drawn))]));
}

function decisions(told) {
  if (!told.decisions.length) return element("p", { class: "soft" }, "The options were given, or there were none to choose.");
  const refused = (entry) => entry.refused.map((one) => element("div", { class: "soft" }, `not ${spelt(one.option)}: ${one.reason}`));
  return table(["step", "options", "reason"], told.decisions.map((entry) => [
    entry.step, entry.options.map(spelt).join(", ") || "–", element("div", {}, entry.reason, refused(entry)),
  ]));
}

// A line lights up those that come from the same nodes of the kernel.
function micro_ops(told) {
  const lines = told.micro_ops.map((op) => ({ op, line: element("div", { class: "op" }, element("span", {}, op.text), element("span", { class: "soft" }, op.nodes.join(" "))) }));
  for (const { op, line } of lines) {
    line.addEventListener("mouseenter", () => {
      for (const other of lines) other.line.classList.toggle("same", other.op.nodes.some((node) => op.nodes.includes(node)));
    });
  }
  return element("pre", {}, lines.map(({ line }) => line));
}

function open_proofs(told) {
  const rows = Object.entries(told.proofs).filter(([, value]) => typeof value === "string");
  const verdicts = table(["what", "", ""], rows.map(([name, value]) => [name, element("span", { class: value === "proved" ? "good" : "bad" }, value), ""]));
  const left = told.proofs.open ?? [];
  if (!left.length) return verdicts;
  return element("div", {}, verdicts, element("h2", {}, "Left open"), table(["of", "argument", "node", "why"], left.map((one) => [one.of, String(one.argument ?? ""), String(one.node ?? ""), one.why ?? ""])));
}

const kernel = (told) => element("pre", {}, told.kernel);

function validations(told) {
  if (!told.validations.length) return element("p", { class: "soft" }, "It has not run on a device yet.");
  return table(["verdict", "device", "seeds", "worst ulp", "at"], told.validations.map((run) => [
    element("span", { class: run.verdict === "right" ? "good" : "bad" }, run.verdict), run.device, run.runs.map((one) => one.seed).join(" "),
    run.runs.flatMap((one) => one.outputs.map((output) => String(output.worst_ulp))).join(" "), run.at,
  ]));
}

async function validate() {
  const { body } = await call("validate", { method: "POST", body: JSON.stringify({ request: edited(), special: false }) });
  const { body: program } = await call(`program/${body.key}`);
  await show(program, body.verdict === "right" ? "ran right" : `ran ${body.verdict}`, []);
  [...at("tabs").children].find((tab) => tab.textContent === "Validations").click();
}

async function begin() {
  at("token").addEventListener("change", begin, { once: true });
  const [{ body: described }, { body: targets }, { body: attached }] = await Promise.all([call("openapi.json"), call("targets"), call("devices")]);
  const examples = described.paths["/compile"].post.requestBody.content["application/json"].examples;
  state.examples = Object.fromEntries(Object.entries(examples).map(([name, example]) => [name, example.value]));
  at("example").replaceChildren(...Object.keys(state.examples).map((name) => element("option", {}, name)));
  at("target").replaceChildren(...Object.keys(targets.targets).map((name) => element("option", {}, name)));
  const [device] = attached.devices;
  at("validate").hidden = !device;
  if (device) at("device").textContent = device.name;
  at("state").textContent = targets.compiler;
  take_example();
  const key = location.hash.slice(1);
  if (/^[0-9a-f]{64}$/.test(key)) {
    const { body: program } = await call(`program/${key}`);
    await show(program, "stored", []);
  }
}

function take_example() {
  const request = state.examples[at("example").value];
  at("target").value = request.device.target;
  at("optimize").value = request.optimize ?? "heuristic";
  at("annotate").checked = Boolean(request.annotate);
  at("request").value = written(request);
}

at("example").addEventListener("change", take_example);
for (const id of ["target", "optimize", "annotate"]) at(id).addEventListener("change", choose);
at("compile").addEventListener("click", () => busy(at("compile"), compile));
at("validate").addEventListener("click", () => busy(at("validate"), validate));
at("request").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) busy(at("compile"), compile);
});
begin().catch(show_problem);
