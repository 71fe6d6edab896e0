/**
 * The data types of the page. They are global and outside of the page's directory, because browsers
 * do not need them; `tsc` checks the modules with them.
 */

// ------------------------------------------------------------------------------- networks

type Kind = "linear" | "quadratic" | "reduced";
type Activation = "identity" | "logistic" | "tanh" | "relu" | "softmax";
type Init = "normal" | "glorot" | "identity" | "relinear";
type Field = "W" | "b" | "Q" | "U" | "c";
type Numbers = Float64Array | number[];
type Random = import("./page/random.js").Random;

interface LayerShape {
	kind: Kind;
	outputs: number;
	activation: Activation;
}

/** The parameters, and the values of the sample that is being computed. Matrices are by rows. */
interface Layer extends LayerShape {
	inputs: number;
	/** outputs x inputs */
	W: Float64Array;
	b: Float64Array;
	/** The upper triangle of each neuron's matrix: q11, q12, ..., q1n, q22, ..., qnn. */
	Q: Float64Array | null;
	U: Float64Array | null;
	c: Float64Array | null;
	/** The pre-activations and the activations. */
	z: Float64Array;
	a: Float64Array;
	/** W x + b and U x + c of a reduced layer. */
	v1: Float64Array;
	v2: Float64Array;
	/** dL/dz and dL/dx */
	delta: Float64Array;
	dx: Float64Array;
}

interface Network {
	inputs: number;
	layers: Layer[];
	/** All parameters, the weights before the biases; the layers hold views of it. */
	theta: Float64Array;
	/** How many of them are weights. */
	weights: number;
}

interface TrainerOptions {
	optimizer: "sgd" | "adam";
	rate: number;
	/** The coefficient of the penalty l2/2 |weights|^2. */
	l2: number;
}

/** Changes the parameters, given the sum of `1 / share` gradients; false if one is not finite. */
type Update = (sum: Float64Array, share: number, options: TrainerOptions) => boolean;

interface Trainer {
	/** One update from the mean gradient of these rows; false if a parameter is not finite. */
	step(X: Float64Array, Y: Float64Array, rows: Int32Array): boolean;
}

// --------------------------------------------------------------------------------- conics

type Point = [number, number];

/** The set of x with x'Qx + w'x + b = 0; Q holds q11, q12 and q22 of the symmetric matrix. */
interface Conic {
	Q: [number, number, number];
	w: Point;
	b: number;
}

type ConicKind =
	| "ellipse"
	| "circle"
	| "parabola"
	| "hyperbola"
	| "crossing lines"
	| "parallel lines"
	| "coincident lines"
	| "line"
	| "point"
	| "empty"
	| "everything";

/**
 * F = sum_i eigenvalues[i] y_i^2 + slope y_flat + level, where
 * x = origin + y_1 directions[0] + y_2 directions[1].
 */
interface CanonicalForm {
	/** Those that count as zero are zero. */
	eigenvalues: Point;
	directions: [Point, Point];
	/** The center, the vertex of a parabola, or a point of a line. */
	origin: Point;
	/** F at the center, zero if it counts as zero. */
	level: number;
	/** Not zero if there is no center. */
	slope: number;
	/** The direction of the slope. */
	flat: number;
}

interface Box {
	x0: number;
	x1: number;
	y0: number;
	y1: number;
}

interface Boundary {
	/** [k] for the boundary of output k, [j, k] for a tie of two classes. */
	classes: number[];
	/** In the coordinates of the network's inputs. */
	conic: Conic;
	/** What to draw; of a tie, the part where both classes are the largest. */
	arcs: Float64Array[];
}

// ----------------------------------------------------------------------------------- data

interface Data {
	/** x1, x2, x1, x2, ... in the user's units. */
	X: Float64Array;
	/** The class of each point, an index of `names`. */
	classes: Int32Array;
	names: string[];
	features: string[];
	/** For regression: the target of each point in the user's units; its name is `names[0]`. */
	values?: Float64Array;
}

/** One point of class k; `share` runs from 0 to 1 over the points of a class. */
interface Draw {
	random: Random;
	k: number;
	share: number;
	noise: number;
}

interface Table {
	header: string[];
	rows: string[][];
	/** The line number of each row. */
	lines: number[];
	decimalComma: boolean;
}

/** x is replaced by (x - mean) / scale. */
interface Scaler {
	mean: number[];
	scale: number[];
	/** For regression: mean and standard deviation of the target. */
	target?: Point;
}

/** What a worker trains on. */
interface Problem {
	/** Inputs of the network, two per sample. */
	X: Float64Array;
	/** Targets, one per output and sample. */
	Y: Float64Array;
	/** Rows, in increasing order. */
	train: Int32Array;
	test: Int32Array;
	scaler: Scaler;
	outputs: number;
}

// ------------------------------------------------------------------------------- settings

interface Settings {
	/** The name of a data set, "points" (drawn) or "csv". */
	data: string;
	noise: number;
	size: number;
	/** The share of the test set. */
	test: number;
	seed: number;
	standardize: boolean;
	/** The hidden layers. */
	layers: { kind: Kind; outputs: number }[];
	/** The kind of the output layer. */
	lastKind: Kind;
	/** Of the hidden layers. */
	activation: "tanh" | "logistic" | "relu" | "identity";
	output: "sigmoid" | "softmax" | "value";
	init: Init;
	/** The standard deviation of init "normal". */
	scale: number;
	optimizer: "sgd" | "adam";
	batch: number;
	rate: number;
	l2: number;
	/** Samples per second; 0 is as fast as possible. */
	speed: number | "auto";
	compare: boolean;
	/** 1 to 5; 0 is none. */
	lesson: number;
	/** How many samples the network has been trained on. */
	samples: number;
	/** The data, if `data` is "points" or "csv". */
	points: Data | null;
}

interface Choice {
	type: "choice";
	choices: { value: string | number; label: string }[];
}
interface Numeric {
	type: "number";
	least: number;
	most: number;
	step: number;
	integer: boolean;
}
interface Flag {
	type: "flag";
}
interface Named {
	name: Exclude<keyof Settings, "layers" | "points">;
	label: string;
	help: string;
}
type Control = Named & (Choice | Numeric | Flag);

// ------------------------------------------------------------------------------- messages

/**
 * The page and a training worker exchange these messages. After "start", the worker is paused.
 * Every message from the page is answered by a state, and so is progress.
 */
type ToWorker = Start | Order | Speed;

interface Start {
	type: "start";
	/** Any number, repeated in every state, so that states of an old run can be ignored. */
	run: number;
	settings: Settings;
	data: Data;
	/** Initial parameters, used instead of new ones. */
	parameters?: Float64Array;
	/** Used instead of the data's own. */
	scaler?: Scaler | null;
	/**
	 * Train that many samples as fast as possible, then pause. If it is running: at most that many,
	 * and not for long, before the first state.
	 */
	samples?: number;
	running?: boolean;
}
interface Order {
	type: "run" | "pause" | "sample" | "epoch" | "rewind";
}
interface Speed {
	type: "speed";
	speed: Settings["speed"];
}

interface TrainAndTest {
	train: number;
	/** NaN if there is no test set. */
	test: number;
}

interface State {
	run: number;
	running: boolean;
	/** Finished epochs. */
	epoch: number;
	/** Training samples that the network has seen. */
	samples: number;
	/** theta of the network. */
	parameters: Float64Array;
	loss: TrainAndTest;
	/** The share of points that are right; for regression, R². */
	accuracy: TrainAndTest;
	/** Rows of five: epoch, train loss, test loss, train accuracy, test accuracy. */
	curve: Float64Array;
	/** If not null, training has stopped, and everything else is the last good state. */
	diverged: Divergence | null;
}

interface Divergence {
	samples: number;
	rate: number;
	suggestedRate: number;
}

// ------------------------------------------------------------------------------ model files

interface Model {
	net: Network;
	scaler: Scaler | null;
	classes: string[];
	features: string[];
	/** For regression: mean and standard deviation of the target. */
	target?: Point;
}

type Dtype = "F64" | "F32" | "I64" | "U8" | "BOOL";

interface Tensor {
	dtype: Dtype;
	shape: number[];
	bytes: Uint8Array;
}
type Tensors = Map<string, Tensor>;

/** Stores an array under a name, which is returned; without a shape, as a list of bytes. */
type Store = (name: string, dtype: Dtype, array: ArrayBufferView, shape?: number[]) => string;

// -------------------------------------------------------------------------------- the page

type Rgb = [number, number, number];
type Context = CanvasRenderingContext2D;
type Say = (text: string) => void;
type App = import("./page/app.js").App;
type Picture = import("./page/picture.js").Picture;
type Probe = import("./page/probe.js").Probe;
type Run = import("./page/run.js").Run;

interface Panel {
	kind: Kind | null;
	run: Run;
	picture: Picture;
	probe: Probe;
	/** Since the last frame. */
	changed: boolean;
	painting: Painting | null;
	/** The last one. */
	job: Job | null;
}

interface View extends Box {
	/** Whether both axes have the same scale. */
	equal: boolean;
}

/** What replaces the random start of a run. */
interface Beginning {
	parameters?: Float64Array;
	scaler?: Scaler;
	/** How many samples to train on before the first pause. */
	samples?: number;
	/** Whether training goes on. */
	running?: boolean;
}

/** A place where a point is drawn or erased, in pixels. */
interface Mark {
	picture: Picture;
	pixel: Point;
	erase: boolean;
}

/** Which state was painted. */
interface Stamp {
	run: number;
	samples: number;
	still: boolean;
}

/** Layer and neuron. */
type Selected = [number, number];

interface Job {
	/** For regression: the least and the largest target. */
	range: Point | null;
	stamp: Stamp;
	shapes: LayerShape[];
	theta: Float64Array;
	scaler: Scaler;
	view: View;
	/** Grid points of the regions. */
	nx: number;
	ny: number;
	/** The neuron whose zero line is wanted. */
	selected: Selected | null;
	thumbs: boolean;
}

type Pixels = Uint8ClampedArray<ArrayBuffer>;

/** A boundary in the user's units. */
interface Line {
	/** [k] for an output's own boundary, [j, k] for a tie. */
	classes: number[];
	/** The name of the exact conic; null for a computed contour. */
	kind: string | null;
	/** Of a level curve: its level. */
	label?: string;
	arcs: Float64Array[];
}

interface Painting {
	stamp: Stamp;
	nx: number;
	ny: number;
	/** RGBA, the first row at the top. */
	pixels: Pixels;
	lines: Line[];
	selectedLine: Line | null;
	thumbs: { nx: number; ny: number; pixels: Pixels[][] } | null;
}

interface Nearest {
	distance: number;
	/** In the user's units. */
	point: Point;
	/** Of the conic. */
	kind: string;
}

interface Reading {
	/** One per class; for regression none. */
	probabilities: number[];
	/** For regression. */
	value: number | null;
	predicted: number;
	nearest: Nearest | null;
}

interface Series {
	name: string;
	/** Of style.css: "--text". */
	color: string;
	curve: Float64Array;
	loss: TrainAndTest;
	accuracy: TrainAndTest;
}

/** In pixels. */
interface Place {
	x: number;
	y: number;
}

interface Label {
	key: string;
	text: string;
	/** Points of the curve. */
	places: Place[];
	width: number;
	color: string;
}

interface Facts extends State {
	/** Whether a neuron is selected. */
	selected: boolean;
}

interface Step {
	/** Paragraphs. */
	text: string[];
	/** Differences from the default settings. */
	settings: Partial<Settings>;
	goal: string;
	reached(facts: Facts): boolean;
}

interface Lesson {
	title: string;
	about: string;
	steps: Step[];
}
