// Where each step of a graph stands: layers from left to right, or one below the other where there
// is no room beside. Only the shape decides, so that nothing moves while numbers change.
import { Graph, layout } from "../vendor/dagre.js";

export const STEP = { width: 212, height: 116 };
const BETWEEN = { layers: 56, steps: 26 };
const PHONE = { room: 480, lane: 8, below: 30 }; // Up to which width steps are stacked; px between lines, and between steps.
const STRETCH = 120; // More between two layers of a small graph, so that it fills its card.

/** What the layout depends on, as a text. */
export const shapeOf = ({ processors, edges }) =>
  `${processors.map((each) => each.id).join()}|${edges.map((each) => `${each.source}-${each.target}`).join()}`;

/**
 * `{width, height, at: Map(id → {x, y}), lines: Map("source-target" → {path, tip})}`; x and y are
 * centres, a tip is the points of an arrow head.
 */
export function placed(view, room) {
  return room > 0 && room < PHONE.room ? stacked(view, room) : layered(view, room);
}

function layered({ processors, edges }, room) {
  const graph = new Graph();
  graph.setGraph({ rankdir: "LR", ranksep: BETWEEN.layers, nodesep: BETWEEN.steps });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id } of processors) graph.setNode(String(id), { ...STEP });
  for (const { source, target } of edges) graph.setEdge(String(source), String(target));
  layout(graph);
  const { width, height } = graph.graph();
  const nodeOf = (id) => graph.node(String(id));
  const layers = [...new Set(processors.map(({ id }) => nodeOf(id).x))].sort((a, b) => a - b);
  const gaps = Math.max(1, layers.length - 1);
  const more = Math.max(0, Math.min(STRETCH, (room - width) / gaps));
  const moved = new Map(layers.map((x, number) => [x, layers.length > 1 ? x + more * number : x]));
  const at = new Map(processors.map(({ id }) => [id, { x: moved.get(nodeOf(id).x), y: nodeOf(id).y }]));
  const lines = new Map(edges.map(({ source, target }) => {
    const { points } = graph.edge(String(source), String(target));
    const beside = points.filter(({ x }) => moved.has(x)).map(({ x, y }) => ({ x: moved.get(x), y }));
    const [from, to] = [at.get(source), at.get(target)];
    return [`${source}-${target}`, { path: path(from, to, beside), tip: arrow(to.x - STEP.width / 2, to.y) }];
  }));
  return {
    width: Math.max(width + (layers.length > 1 ? more * gaps : 0), STEP.width),
    height: Math.max(height, STEP.height),
    at,
    lines,
  };
}

/** A line that leaves and arrives level, and passes level beside the steps of the layers between. */
function path(from, to, beside) {
  const half = STEP.width / 2;
  const stops = [{ x: from.x + half, y: from.y }];
  for (const { x, y } of beside) {
    if (x > from.x && x < to.x) stops.push({ x: x - half, y }, { x: x + half, y });
  }
  stops.push({ x: to.x - half - 5, y: to.y });
  let text = `M${stops[0].x} ${stops[0].y}`;
  for (let i = 1; i < stops.length; i += 1) {
    const [a, b] = [stops[i - 1], stops[i]];
    const bend = (b.x - a.x) / 2;
    text += `C${a.x + bend} ${a.y} ${b.x - bend} ${b.y} ${b.x} ${b.y}`;
  }
  return text;
}

const arrow = (x, y) => `${x - 8},${y - 5} ${x},${y} ${x - 8},${y + 5}`;

/** One step a row, each behind those that it gets records from; lines that pass others are on the left. */
function stacked({ processors, edges }, room) {
  const order = inOrder(processors, edges);
  const far = edges.filter(({ source, target }) => order.indexOf(target) - order.indexOf(source) !== 1);
  const left = far.length ? 14 + PHONE.lane * far.length : 0;
  const x = Math.max(left + STEP.width / 2, (room + left) / 2);
  const yOf = (row) => STEP.height / 2 + row * (STEP.height + PHONE.below);
  const at = new Map(order.map((id, row) => [id, { x, y: yOf(row) }]));
  const lines = new Map(edges.map((edge) => {
    const [from, to] = [at.get(edge.source), at.get(edge.target)];
    const lane = far.indexOf(edge);
    return [`${edge.source}-${edge.target}`, lane < 0 ? straight(x, from, to) : beside(x, from, to, 14 + PHONE.lane * lane)];
  }));
  return { width: x + STEP.width / 2, height: yOf(order.length - 1) + STEP.height / 2, at, lines };
}

function straight(x, from, to) {
  const [top, bottom] = [from.y + STEP.height / 2, to.y - STEP.height / 2];
  return { path: `M${x} ${top}L${x} ${bottom - 5}`, tip: `${x - 5},${bottom - 8} ${x},${bottom} ${x + 5},${bottom - 8}` };
}

function beside(x, from, to, lane) {
  const edge = x - STEP.width / 2;
  const [start, end] = [from.y + 14, to.y - 14]; // Lines that leave and those that come are apart.
  const turn = edge - lane;
  return { path: `M${edge} ${start}H${turn + 6}Q${turn} ${start} ${turn} ${start + 6}V${end - 6}Q${turn} ${end} ${turn + 6} ${end}H${edge - 5}`, tip: arrow(edge, end) };
}

/** Steps in an order in which nobody comes before those that it gets records from; branches stay together. */
function inOrder(processors, edges) {
  const order = [];
  const visit = (id) => {
    if (order.includes(id) || !edges.every(({ source, target }) => target !== id || order.includes(source))) return;
    order.push(id);
    for (const { source, target } of edges) if (source === id) visit(target);
  };
  for (const { id } of processors) visit(id);
  return order;
}
