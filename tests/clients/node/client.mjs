// The matrix in Node: the extension file and @duckdb/node-api.
//
// Arguments: the extension, and a file of sessions. One JSON object goes to stdout.

import { readFileSync } from "node:fs";
import { BIGINT, DuckDBInstance, DuckDBTypeId, LIST, listValue, version } from "@duckdb/node-api";

/** A value as every client of the matrix writes it. */
function render(value, type) {
  if (value === null || typeof value === "boolean") return value;
  switch (type.typeId) {
    case DuckDBTypeId.LIST:
    case DuckDBTypeId.ARRAY:
      return value.items.map((item) => render(item, type.valueType));
    case DuckDBTypeId.STRUCT:
      return Object.fromEntries(type.entryNames.map((name, i) => [name, render(value.entries[name], type.entryTypes[i])]));
    case DuckDBTypeId.FLOAT:
    case DuckDBTypeId.DOUBLE:
      return bits(value, type.typeId);
    case DuckDBTypeId.BLOB:
      return Buffer.from(value.bytes).toString("hex");
    case DuckDBTypeId.TIMESTAMP:
      return `${new Date(Number(value.micros / 1000n)).toISOString().slice(0, -1)}${`${value.micros % 1000n}`.padStart(3, "0")}`;
    default:
      return `${value}`;
  }
}

/** A FLOAT or DOUBLE by its bits; NaN has many. */
function bits(value, typeId) {
  if (Number.isNaN(value)) return "nan";
  const bytes = Buffer.alloc(typeId === DuckDBTypeId.FLOAT ? 4 : 8);
  if (bytes.length === 4) bytes.writeFloatBE(value);
  else bytes.writeDoubleBE(value);
  return bytes.toString("hex");
}

/** Values and types of parameters: the type of a list is not guessed. */
function bound(parameters) {
  const value = (p) => (Array.isArray(p) ? listValue(p.map(BigInt)) : Number.isInteger(p) ? BigInt(p) : p);
  return [parameters.map(value), parameters.map((p) => (Array.isArray(p) ? LIST(BIGINT) : undefined))];
}

/** Runs a query that only an interrupt ends; one that comes before the query has begun is lost. */
async function interrupted(connection, sql) {
  const timer = setInterval(() => connection.interrupt(), 50);
  try {
    await connection.run(sql);
  } finally {
    clearInterval(timer);
  }
}

/** Columns, types and rows of a query, or its error and whether the connection goes on. */
async function answer(connection, query) {
  try {
    if (query.interrupt) await interrupted(connection, query.sql);
    const result = await connection.runAndReadAll(query.sql, ...bound(query.parameters ?? []));
    const types = result.columnTypes();
    return {
      columns: result.columnNames(),
      types: types.map((type) => `${type}`),
      rows: result.getRows().map((row) => row.map((value, i) => render(value, types[i]))),
    };
  } catch (error) {
    const rows = (await connection.runAndReadAll("SELECT 42")).getRows();
    return { error: error.message, then: rows.length === 1 && rows[0][0] === 42 };
  }
}

/** The answers of each connection of a session; the connections work at the same time. */
async function run(extension, session) {
  const connections = [];
  for (let i = 0; i < session.databases; i++) {
    const database = await DuckDBInstance.create(session.database, { allow_unsigned_extensions: "true" });
    for (let j = 0; j < session.connections; j++) connections.push(await database.connect());
    const first = connections.at(-1);
    await first.run(`LOAD '${extension}'`);
    await first.run("CALL engram_attach(?)", [session.directory]);
  }
  return Promise.all(
    connections.map(async (connection) => {
      const answers = {};
      for (const query of session.queries) answers[query.name] = await answer(connection, query);
      return answers;
    }),
  );
}

const [extension, sessions] = process.argv.slice(2);
const answers = {};
for (const session of JSON.parse(readFileSync(sessions, "utf8"))) answers[session.name] = await run(extension, session);
process.stdout.write(JSON.stringify({ version: version(), sessions: answers }));
