// Where each step of a graph stands: layers from left to right. Only the shape decides, so that
// nothing moves while numbers change.
import { Graph, layout } from "../vendor/dagre.js";

export const STEP = { width: 212, height: 116 };
const BETWEEN = { layers: 56, steps: 26 };
const STRETCH = 120; // More between two layers of a small graph, so that it fills its card.

/** What the layout depends on, as a text. */
export const shapeOf = ({ processors, edges }) =>
  `${processors.map((each) => each.id).join()}|${edges.map((each) => `${each.source}-${each.target}`).join()}`;

/** `{width, height, at: Map(id → {x, y}), lines: Map("source-target" → path)}`; x and y are centres. */
export function placed({ processors, edges }, room) {
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
    return [`${source}-${target}`, path(at.get(source), at.get(target), beside)];
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
