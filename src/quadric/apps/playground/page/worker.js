/** Trains a network in the background; types.d.ts lists the messages. */

import { samplesPerSecond } from "./settings.js";
import { Session } from "./training_loop.js";

const WORK = 20; // milliseconds of training between two checks for messages
const PAUSE = 33; // milliseconds between two states, or more if a state takes long to compute
const CATCH_UP = 40; // milliseconds to repeat the training with other points

/** @type {Session | null} */
let session = null;
let run = 0;
let running = false;
let speed = 0; // samples per second
let pause = PAUSE;
let target = 0; // fast-forward to this number of samples
let owed = 0; // samples still to be trained at the chosen speed
let last = 0; // when `owed` was last computed
let sent = 0; // when the last state was sent
let news = false; // whether something has changed since then
let timer = 0;

/** @param {MessageEvent<ToWorker>} event */
self.onmessage = ({ data: message }) => {
	if (message.type === "start") {
		session = new Session(message.settings, message.data, message);
		run = message.run;
		start(session, message);
	} else if (message.type === "speed") {
		setSpeed(message.speed);
	} else if (session) {
		obey(session, message.type);
	}
	send();
	clearTimeout(timer);
	last = performance.now();
	if (running) timer = setTimeout(work, 0);
};

/** @param {Session} session @param {Start} message */
function start(session, { samples = 0, running: go = false, settings }) {
	setSpeed(settings.speed);
	target = go ? 0 : samples;
	running = go || target > 0;
	const deadline = performance.now() + CATCH_UP;
	while (go && session.run.samples < samples && performance.now() < deadline) {
		if (session.run.diverged) break;
		session.step();
	}
}

/** @param {Settings["speed"]} setting */
function setSpeed(setting) {
	speed = samplesPerSecond(setting, session?.order.length ?? 0);
	owed = 0;
}

/** @param {Session} session @param {Order["type"]} order */
function obey(session, order) {
	running = order === "run";
	target = 0;
	owed = 0;
	if (order === "rewind") session.rewind();
	if (order === "sample") session.step();
	if (order === "epoch") {
		do session.step();
		while (session.run.batch !== 0 && !session.run.diverged);
	}
}

/** Trains for a while, reports, and schedules itself again. */
function work() {
	if (!session) return;
	const now = performance.now();
	const fast = speed === 0 || target > 0;
	const most = Math.max(speed, session.batches[0].length); // a slow computer does not catch up
	owed = fast ? Infinity : Math.min(owed + (speed * (now - last)) / 1000, most);
	last = now;
	const seen = session.run.samples;
	train(session, now + WORK);
	if (session.run.diverged || (target > 0 && session.run.samples >= target)) running = false;
	news ||= session.run.samples !== seen;
	if (!running || (news && performance.now() - sent >= pause)) send();
	if (running) timer = setTimeout(work, fast ? 0 : PAUSE / 2);
}

/** @param {Session} session @param {number} deadline */
function train(session, deadline) {
	const batch = session.batches[0].length;
	while (owed >= batch && !session.run.diverged) {
		if (target > 0 && session.run.samples >= target) return;
		session.step();
		owed -= batch;
		if (performance.now() > deadline) return;
	}
}

function send() {
	if (!session) return;
	const before = performance.now();
	const state = session.state();
	if (state.diverged) running = false;
	const transfer = [state.parameters.buffer, state.curve.buffer];
	self.postMessage({ run, running, ...state }, { transfer });
	sent = performance.now();
	pause = Math.max(PAUSE, 2 * (sent - before));
	news = false;
}
