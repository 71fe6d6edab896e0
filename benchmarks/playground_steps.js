/**
 * Steps per second of the page's training loop: node playground_steps.js START X Y ROUNDS
 *
 * START, X and Y are files of little-endian float64 numbers: the parameters of a 2 -> 12 -> 6
 * network of quadratic layers, in the order of the page, the inputs and the targets. Prints the
 * parameters after one epoch in the given order, and the seconds of each further epoch, as JSON.
 */
import { readFileSync } from "node:fs";

import { emptyNetwork } from "../src/quadric/apps/playground/page/net.js";
import { makeTrainer } from "../src/quadric/apps/playground/page/optimizers.js";

const [start, X, Y] = process.argv.slice(2, 5).map((file) => {
  return new Float64Array(new Uint8Array(readFileSync(file)).buffer);
});
const net = emptyNetwork(2, [
  { kind: "quadratic", outputs: 12, activation: "tanh" },
  { kind: "quadratic", outputs: 6, activation: "softmax" },
]);
net.theta.set(start);
const trainer = makeTrainer(net, { optimizer: "sgd", rate: 0.03, l2: 0 });
const row = new Int32Array(1);

function epoch() {
  for (row[0] = 0; row[0] < X.length / 2; row[0]++) trainer.step(X, Y, row);
}

epoch();
const parameters = [...net.theta];
const seconds = Array.from({ length: Number(process.argv[5]) }, () => {
  const before = process.cpuUsage().user;
  epoch();
  return (process.cpuUsage().user - before) / 1e6;
});
console.log(JSON.stringify({ parameters, seconds }));
