/** The gradient that the page's steps use, for tests. */
import { copyNetwork } from "../../../src/quadric/apps/playground/page/net.js";
import { evaluate, makeTrainer } from "../../../src/quadric/apps/playground/page/optimizers.js";

/** The mean loss of all samples plus the penalty, and its gradient: a step of SGD with rate 1. */
export function gradients(net, X, Y, l2 = 0) {
	const moved = copyNetwork(net);
	const rows = Int32Array.from({ length: X.length / net.inputs }, (_, i) => i);
	makeTrainer(moved, { optimizer: "sgd", rate: 1, l2 }).step(X, Y, rows);
	const squares = net.theta.subarray(0, net.weights).reduce((sum, one) => sum + one * one, 0);
	const difference = net.theta.map((value, i) => value - moved.theta[i]);
	return {
		loss: evaluate(net, X, Y).loss + (l2 / 2) * squares,
		gradients: copyNetwork(net, difference),
	};
}
