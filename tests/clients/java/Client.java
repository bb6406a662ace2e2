import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Array;
import java.sql.Blob;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.LocalDateTime;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.duckdb.DuckDBConnection;
import org.duckdb.DuckDBStruct;

/**
 * The matrix in Java: the extension file and the JDBC driver.
 *
 * <p>Arguments: the extension, and a file of sessions. One JSON object goes to stdout.
 */
public final class Client {
    private static final DateTimeFormatter MICROSECONDS = DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH:mm:ss.SSSSSS");

    public static void main(String[] arguments) throws Exception {
        JsonElement sessions = JsonParser.parseString(Files.readString(Path.of(arguments[1])));
        Map<String, Object> answers = new LinkedHashMap<>();
        for (JsonElement session : sessions.getAsJsonArray()) {
            JsonObject object = session.getAsJsonObject();
            answers.put(object.get("name").getAsString(), run(arguments[0], object));
        }
        Map<String, Object> all = new LinkedHashMap<>();
        try (DuckDBConnection connection = open(":memory:")) {
            all.put("version", connection.getMetaData().getDatabaseProductVersion());
        }
        all.put("sessions", answers);
        Gson gson = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();
        new PrintStream(System.out, true, StandardCharsets.UTF_8).print(gson.toJson(all));
    }

    private static DuckDBConnection open(String database) throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("allow_unsigned_extensions", "true");
        return (DuckDBConnection) DriverManager.getConnection("jdbc:duckdb:" + database, properties);
    }

    /** The answers of each connection of a session; the connections work at the same time. */
    private static List<Object> run(String extension, JsonObject session) throws Exception {
        List<DuckDBConnection> connections = new ArrayList<>();
        for (int i = 0; i < session.get("databases").getAsInt(); i++) {
            DuckDBConnection first = open(session.get("database").getAsString());
            try (Statement statement = first.createStatement()) {
                statement.execute("LOAD '" + extension + "'");
            }
            try (PreparedStatement attach = first.prepareStatement("CALL engram_attach(?)")) {
                attach.setString(1, session.get("directory").getAsString());
                attach.execute();
            }
            connections.add(first);
            for (int j = 1; j < session.get("connections").getAsInt(); j++) {
                connections.add((DuckDBConnection) first.duplicate());
            }
        }
        var pool = Executors.newFixedThreadPool(connections.size());
        List<Callable<Object>> work = new ArrayList<>();
        for (DuckDBConnection connection : connections) {
            work.add(() -> {
                Map<String, Object> answers = new LinkedHashMap<>();
                for (JsonElement query : session.getAsJsonArray("queries")) {
                    String name = query.getAsJsonObject().get("name").getAsString();
                    answers.put(name, answer(connection, query.getAsJsonObject()));
                }
                return answers;
            });
        }
        List<Object> answers = new ArrayList<>();
        for (Future<Object> done : pool.invokeAll(work)) {
            answers.add(done.get());
        }
        pool.shutdown();
        for (DuckDBConnection connection : connections) {
            connection.close();
        }
        return answers;
    }

    /** Columns, types and rows of a query, or its error and whether the connection goes on. */
    private static Map<String, Object> answer(DuckDBConnection connection, JsonObject query) throws Exception {
        Map<String, Object> answer = new LinkedHashMap<>();
        String sql = query.get("sql").getAsString();
        try {
            if (query.has("interrupt")) {
                interrupted(connection, sql);
            }
            try (PreparedStatement statement = connection.prepareStatement(sql)) {
                bind(connection, statement, query);
                statement.execute();
                read(statement, answer);
            }
        } catch (SQLException error) {
            answer.put("error", error.getMessage());
            try (Statement statement = connection.createStatement();
                    ResultSet result = statement.executeQuery("SELECT 42")) {
                answer.put("then", result.next() && result.getInt(1) == 42);
            }
        }
        return answer;
    }

    private static void bind(DuckDBConnection connection, PreparedStatement statement, JsonObject query)
            throws SQLException {
        if (!query.has("parameters")) {
            return;
        }
        int index = 0;
        for (JsonElement parameter : query.getAsJsonArray("parameters")) {
            index++;
            if (parameter.isJsonArray()) {
                List<Long> ids = new ArrayList<>();
                parameter.getAsJsonArray().forEach(id -> ids.add(id.getAsLong()));
                statement.setArray(index, connection.createArrayOf("BIGINT", ids.toArray()));
            } else if (parameter.getAsJsonPrimitive().isNumber()) {
                statement.setLong(index, parameter.getAsLong());
            } else {
                statement.setString(index, parameter.getAsString());
            }
        }
    }

    private static void read(Statement statement, Map<String, Object> answer) throws SQLException {
        List<String> columns = new ArrayList<>();
        List<String> types = new ArrayList<>();
        List<Object> rows = new ArrayList<>();
        answer.put("columns", columns);
        answer.put("types", types);
        answer.put("rows", rows);
        ResultSet result = statement.getResultSet();
        if (result == null) {
            columns.add("Count");
            types.add("BIGINT");
            rows.add(List.of(Long.toString(statement.getLargeUpdateCount())));
            return;
        }
        var about = result.getMetaData();
        for (int i = 1; i <= about.getColumnCount(); i++) {
            columns.add(about.getColumnName(i));
            types.add(about.getColumnTypeName(i));
        }
        while (result.next()) {
            List<Object> row = new ArrayList<>();
            for (int i = 1; i <= columns.size(); i++) {
                boolean timestamp = types.get(i - 1).equals("TIMESTAMP");
                row.add(render(timestamp ? result.getObject(i, LocalDateTime.class) : result.getObject(i)));
            }
            rows.add(row);
        }
    }

    /** A value as every client of the matrix writes it. */
    private static Object render(Object value) throws SQLException {
        if (value == null || value instanceof Boolean) {
            return value;
        }
        if (value instanceof Float f) {
            return f.isNaN() ? "nan" : String.format("%08x", Float.floatToIntBits(f));
        }
        if (value instanceof Double d) {
            return d.isNaN() ? "nan" : String.format("%016x", Double.doubleToLongBits(d));
        }
        if (value instanceof Array array) {
            List<Object> items = new ArrayList<>();
            for (Object item : (Object[]) array.getArray()) {
                items.add(render(item));
            }
            return items;
        }
        if (value instanceof DuckDBStruct struct) {
            Map<String, Object> fields = new LinkedHashMap<>();
            for (Map.Entry<String, Object> field : struct.getMap().entrySet()) {
                fields.put(field.getKey(), render(field.getValue()));
            }
            return fields;
        }
        if (value instanceof Blob blob) {
            return HexFormat.of().formatHex(blob.getBytes(1, (int) blob.length()));
        }
        return value instanceof LocalDateTime time ? time.format(MICROSECONDS) : value.toString();
    }

    /** Runs a query that only an interrupt ends; one that comes before the query has begun is lost. */
    private static void interrupted(DuckDBConnection connection, String sql) throws SQLException {
        var timer = Executors.newSingleThreadScheduledExecutor();
        try (Statement statement = connection.createStatement()) {
            Runnable cancel = () -> {
                try {
                    statement.cancel();
                } catch (SQLException closed) {
                    // The query has ended meanwhile.
                }
            };
            timer.scheduleAtFixedRate(cancel, 50, 50, TimeUnit.MILLISECONDS);
            statement.execute(sql);
        } finally {
            timer.shutdownNow();
        }
    }
}
