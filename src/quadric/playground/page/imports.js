/** Opening files: dropped, chosen or pasted. */
import { classColumns, guessColumns, numericColumns, parseCsv, tableData } from "./csv.js";
import { byId, dialogById, inputById, make, onClick, setText } from "./dom.js";
import { readModel } from "./model_reader.js";
import { LIMITS } from "./settings.js";

const MOST_BYTES = 20e6;

export class Imports {
	/**
	 * @param {(data: Data, note: string) => void} onData
	 * @param {(model: Model, name: string) => void} onModel may throw an Error for the user
	 */
	constructor(onData, onModel) {
		this.onData = onData;
		this.onModel = onModel;
		this.dialog = dialogById("import-dialog");
		const file = inputById("file");
		onClick("import-button", () => this.open());
		onClick("csv-button", () => this.open());
		onClick("choose-file", () => file.click());
		onClick("use-text", () => this.attempt(() => this.readCsv(inputById("csv-text").value)));
		file.addEventListener("change", () => {
			this.readFile(file.files?.[0]);
			file.value = "";
		});
		for (const type of ["dragover", "dragleave", "drop"]) {
			document.addEventListener(type, (event) => {
				const { dataTransfer } = /** @type {DragEvent} */ (event);
				if (!dataTransfer?.types.includes("Files")) return;
				event.preventDefault();
				byId("drop").hidden = type !== "dragover";
				if (type === "drop") this.readFile(dataTransfer.files[0]);
			});
		}
	}

	open() {
		byId("import-start").hidden = false;
		byId("import-columns").hidden = true;
		setText(byId("import-error"), "");
		if (!this.dialog.open) this.dialog.showModal();
	}

	/** @param {File} [file] */
	async readFile(file) {
		if (!file) return;
		const content = await file.arrayBuffer();
		this.attempt(() => {
			if (file.size > MOST_BYTES) throw new Error(`${file.name} is larger than 20 MB.`);
			if (!file.name.endsWith(".quadric")) return this.readCsv(new TextDecoder().decode(content));
			this.onModel(readModel(new Uint8Array(content)), file.name);
			this.dialog.close();
		});
	}

	/** Shows the message of an error in the dialog. @param {() => void} action */
	attempt(action) {
		try {
			action();
		} catch (error) {
			this.open();
			setText(byId("import-error"), error instanceof Error ? error.message : String(error));
		}
	}

	/** Shows the choice of columns. @param {string} text */
	readCsv(text) {
		const table = parseCsv(text);
		const numeric = numericColumns(table);
		const possible = classColumns(table);
		if (numeric.length < 2 || possible.length === 0) {
			const target = `one with 2 to ${LIMITS.classes} different values as the class`;
			throw new Error(`The file needs two columns of numbers as features, and ${target}.`);
		}
		const guess = guessColumns(table);
		const chosen = [
			makeSelect("csv-first", table, numeric, guess[0]),
			makeSelect("csv-second", table, numeric, guess[1]),
			makeSelect("csv-target", table, possible, guess[2]),
		];
		const labels = ["First feature", "Second feature", "Class"];
		const fields = chosen.map((select, i) =>
			make("label", { class: "field", for: select.id }, labels[i], select),
		);
		const click = () =>
			this.attempt(() => {
				const [a, b, c] = chosen.map((select) => Number(select.value));
				if (a === b) throw new Error("The two features are the same column; choose another one.");
				const { skipped, ...data } = tableData(table, [a, b], c);
				this.onData(data, skipped ? `Left out because of empty values: ${skipped} rows.` : "");
				this.dialog.close();
			});
		const attributes = { type: "button", class: "primary", id: "csv-use", click };
		const use = make("button", attributes, "Use these columns");
		this.open();
		byId("import-start").hidden = true;
		byId("import-columns").hidden = false;
		byId("import-columns").replaceChildren(`${table.rows.length} rows.`, ...fields, use);
		use.focus();
	}
}

/** @param {string} id @param {Table} table @param {number[]} columns @param {number} chosen */
function makeSelect(id, { header }, columns, chosen) {
	const select = make("select", { id });
	for (const i of columns) select.append(make("option", { value: i }, header[i]));
	select.value = String(chosen);
	return select;
}
