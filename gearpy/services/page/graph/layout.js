// Where each step of a graph stands: layers from left to right. Only the shape decides, so that
// nothing moves while numbers change.
import { Graph, layout } from "../vendor/dagre.js";

export const STEP = { width: 196, height: 104 };
const BETWEEN = { layers: 56, steps: 26 };

/** What the layout depends on, as a text. */
export const shapeOf = ({ processors, edges }) =>
  `${processors.map((each) => each.id).join()}|${edges.map((each) => `${each.source}-${each.target}`).join()}`;

/** `{width, height, at: Map(id → {x, y}), lines: Map("source-target" → path)}`; x and y are centres. */
export function placed({ processors, edges }) {
  const graph = new Graph();
  graph.setGraph({ rankdir: "LR", ranksep: BETWEEN.layers, nodesep: BETWEEN.steps });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id } of processors) graph.setNode(String(id), { ...STEP });
  for (const { source, target } of edges) graph.setEdge(String(source), String(target));
  layout(graph);
  const at = new Map(processors.map(({ id }) => {
    const { x, y } = graph.node(String(id));
    return [id, { x, y }];
  }));
  const layers = [...new Set([...at.values()].map(({ x }) => x))].sort((a, b) => a - b);
  const lines = new Map(edges.map(({ source, target }) => {
    const { points } = graph.edge(String(source), String(target));
    return [`${source}-${target}`, path(at.get(source), at.get(target), points, layers)];
  }));
  const { width, height } = graph.graph();
  return { width: Math.max(width, STEP.width), height: Math.max(height, STEP.height), at, lines };
}

/** A line that leaves and arrives level, and passes beside the steps of the layers between. */
function path(from, to, points, layers) {
  const half = STEP.width / 2;
  const stops = [{ x: from.x + half, y: from.y }];
  for (const layer of layers.filter((x) => x > from.x + 1 && x < to.x - 1)) {
    const beside = points.find(({ x }) => Math.abs(x - layer) < 1);
    if (beside) stops.push({ x: layer - half, y: beside.y }, { x: layer + half, y: beside.y });
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
