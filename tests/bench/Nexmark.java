// The questions of Nexmark in Flink: SQL in an embedded MiniCluster, parallelism 1, heap state, objects reused, no checkpoints.
// Takes a question a line, "QUERY plain|mini EVENTS measure|check", and answers with CPU seconds, records of the sink, net rows and their sum.
// Events are those of examples/nexmark/events.py; all are made before the first question.
import java.io.*;
import java.util.*;
import org.apache.flink.api.common.eventtime.*;
import org.apache.flink.api.common.functions.*;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.sink2.*;
import org.apache.flink.api.java.tuple.*;
import org.apache.flink.configuration.*;
import org.apache.flink.connector.datagen.source.*;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.table.api.*;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.sink.*;
import org.apache.flink.table.data.*;
import org.apache.flink.table.data.binary.BinaryStringData;
import org.apache.flink.table.factories.*;
import org.apache.flink.table.functions.ScalarFunction;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.*;
import org.apache.flink.types.RowKind;

public class Nexmark {
  static final long START = 1_767_225_600_000L, SEED = 1, PER = 1000, LATE = 200, LONGEST = 2L * 100 * 50 * 1000 / (3 * PER);

  // -- events: kind, id, x, y, z, s1, s2, s3, ts, expires; the views say what they are -------------
  static BinaryStringData text(String s) { BinaryStringData made = BinaryStringData.fromString(s); made.ensureMaterialized(); return made; }
  static BinaryStringData[] texts(String... s) { return Arrays.stream(s).map(Nexmark::text).toArray(BinaryStringData[]::new); }
  static final String[] CHANNEL = {"Apple", "Baidu", "Facebook", "Google", "channel-4", "channel-5", "channel-6", "channel-7"};
  static final BinaryStringData[] CHANNELS = texts(CHANNEL), STATES = texts("AZ", "CA", "ID", "OR", "WA", "WY"),
    ITEMS = texts("bike", "book", "chair", "clock", "coat", "lamp", "piano", "ring", "vase"),
    CITIES = texts("Phoenix", "Los Angeles", "Boise", "Portland", "Seattle", "Cheyenne");
  static final String[] FIRST = {"Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal", "Ida", "Jo", "Kit"},
    LAST = {"Abel", "Brown", "Cole", "Doe", "Ellis", "Fox", "Gray", "Hill", "Jones"};
  static final int[] PRICES = {1, 10, 100, 1000};
  static long left;
  static long roll(long sides) { long q = Long.divideUnsigned(left, sides), r = left - q * sides; left = q; return r; }
  static long someone(long group, int hot) {
    boolean is = roll(4) > 0; long other = group - roll(Math.min(1000, group + 1));
    return 1000 + (is ? Math.min(group, group - group % 100 + hot) : other);
  }
  static long price() { long digits = 100 + roll(900); return digits * PRICES[(int) roll(4)]; }
  static RowData event(long number) {
    long group = number / 50; int place = (int) (number % 50);
    long m = number * 0x9E3779B97F4A7C15L + (SEED * 0xA24BAED4963EE407L + 1);
    m = (m ^ (m >>> 32)) * 0xD6E8FEB86659FD93L; left = m ^ (m >>> 32);
    long ts = START + number * 1000 / PER - roll(LATE + 1);
    TimestampData at = TimestampData.fromEpochMillis(ts);
    if (place == 0) {
      int s = (int) roll(6), f = (int) roll(11), l = (int) roll(9);
      return GenericRowData.of(0, 1000 + group, null, null, null, text(FIRST[f] + " " + LAST[l]), CITIES[s], STATES[s], at, null);
    }
    if (place <= 3) {
      BinaryStringData item = ITEMS[(int) roll(9)]; long seller = someone(group, 0), category = 10 + roll(5), reserve = price();
      return GenericRowData.of(1, 1000 + group * 3 + place - 1, seller, category, reserve, item, null, null, at, TimestampData.fromEpochMillis(ts + 1 + roll(LONGEST)));
    }
    long last = group * 3 + 2; boolean hot = roll(2) > 0; long other = last - roll(Math.min(100, last + 1));
    long auction = 1000 + (hot ? last - last % 100 : other), bidder = someone(group, 1), price = price(); int c = (int) roll(8);
    BinaryStringData url = text("https://www.nexmark.com/" + CHANNEL[c] + "/" + auction + "/item.htm?query=1&channel_id=" + c);
    return GenericRowData.of(2, auction, bidder, null, price, CHANNELS[c], url, null, at, null);
  }
  static RowData[] events, bids;
  static class Read implements GeneratorFunction<Long, RowData> {
    final boolean all; Read(boolean all) { this.all = all; }
    public RowData map(Long i) { return (all ? events : bids)[i.intValue()]; }
  }
  static final RowType TYPE = RowType.of(new LogicalType[] {new IntType(), new BigIntType(), new BigIntType(), new BigIntType(), new BigIntType(),
    VarCharType.STRING_TYPE, VarCharType.STRING_TYPE, VarCharType.STRING_TYPE, new TimestampType(3), new TimestampType(3)},
    new String[] {"kind", "id", "x", "y", "z", "s1", "s2", "s3", "ts", "expires"});

  // -- the sink: counts, and in a check adds up ----------------------------------------------------
  static boolean check;
  static long in, net, sum;
  public static class CheckFactory implements DynamicTableSinkFactory {
    public String factoryIdentifier() { return "check"; }
    public Set<ConfigOption<?>> requiredOptions() { return Set.of(); }
    public Set<ConfigOption<?>> optionalOptions() { return Set.of(); }
    public DynamicTableSink createDynamicTableSink(Context c) {
      return new CheckSink(((RowType) c.getCatalogTable().getResolvedSchema().toPhysicalRowDataType().getLogicalType()).getChildren());
    }
  }
  record CheckSink(List<LogicalType> types) implements DynamicTableSink {
    public ChangelogMode getChangelogMode(ChangelogMode asked) {
      if (check) return asked;
      ChangelogMode.Builder some = ChangelogMode.newBuilder();  // As that of "blackhole".
      for (RowKind kind : asked.getContainedKinds()) if (kind != RowKind.UPDATE_BEFORE) some.addContainedKind(kind);
      return some.build();
    }
    public SinkRuntimeProvider getSinkRuntimeProvider(Context c) { return SinkV2Provider.of(new Adder(types.toArray(new LogicalType[0]))); }
    public DynamicTableSink copy() { return this; }
    public String asSummaryString() { return "check"; }
  }
  record Adder(LogicalType[] types) implements Sink<RowData> {
    public SinkWriter<RowData> createWriter(WriterInitContext c) { return new SinkWriter<RowData>() {
      public void write(RowData row, Context c) {
        in++; if (!check) return;
        int sign = row.getRowKind() == RowKind.INSERT || row.getRowKind() == RowKind.UPDATE_AFTER ? 1 : -1; net += sign;
        for (int i = 0; i < types.length; i++) if (!row.isNullAt(i)) sum += sign * (i + 1) * number(row, i);
      }
      long number(RowData row, int i) { switch (types[i].getTypeRoot()) {
        case BIGINT: return row.getLong(i); case INTEGER: return row.getInt(i); case DOUBLE: return Math.round(row.getDouble(i) * 1000);
        case VARCHAR: case CHAR: return row.getString(i).toString().length(); default: return row.getTimestamp(i, 3).getMillisecond(); } }
      public void flush(boolean end) {} public void close() {} }; }
  }

  // -- queries -------------------------------------------------------------------------------------
  public static class Letters extends ScalarFunction {
    public long eval(String s) { long found = 0; for (int i = 0; i < s.length(); i++) if (s.charAt(i) == 'c') found++; return found; } }
  public static class Side extends ScalarFunction {
    static final String[] ROWS = new String[1000]; static { for (int i = 0; i < 1000; i++) ROWS[i] = "value " + i; }
    public String eval(Integer place) { return ROWS[place]; } }
  static final Map<String, String> Q = new HashMap<>();
  static final String OPEN = "A.id = B.auction AND B.ts >= A.ts AND B.ts < A.expires AND B.price >= A.reserve";
  static final String[] RANKS = {"price < 10000", "price >= 10000 AND price < 100000", "price >= 100000"};
  static String counts(String what, String name) {
    StringBuilder s = new StringBuilder(", count(" + what + ") " + name);
    for (int i = 0; i < 3; i++) s.append(", count(" + what + ") FILTER (WHERE " + RANKS[i] + ") " + name + i);
    return s.toString();
  }
  static final String COUNTS = counts("*", "n"), ALL = COUNTS + counts("DISTINCT bidder", "p") + counts("DISTINCT auction", "a"), DAY = "DATE_FORMAT(ts, 'yyyy-MM-dd')";
  static String windows(String how, String of, String sizes) { return "FROM TABLE(" + how + "(TABLE " + of + ", DESCRIPTOR(ts), " + sizes + "))"; }
  static String ranked(String by, String order) { return "FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY " + by + " ORDER BY " + order + ") AS r "; }
  static {
    Q.put("q0", "SELECT auction, bidder, price, channel, ts, url FROM bid");
    Q.put("q1", "SELECT auction, bidder, price * 89 / 100 AS price, channel, ts, url FROM bid");
    Q.put("q2", "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0");
    Q.put("q3", "SELECT P.name, P.city, P.state, A.id FROM auction A JOIN person P ON A.seller = P.id WHERE A.category = 10 AND P.state IN ('OR','ID','CA')");
    Q.put("q4", "SELECT category, AVG(CAST(final AS DOUBLE)) AS av FROM (SELECT MAX(B.price) AS final, A.category FROM auction A, bid B WHERE " + OPEN + " GROUP BY A.id, A.category) GROUP BY category");
    Q.put("q5", "SELECT auction, n, window_start, window_end " + ranked("window_start, window_end", "n DESC, auction ASC") + "FROM (SELECT auction, count(*) AS n, window_start, window_end "
      + windows("HOP", "bid", "INTERVAL '2' SECOND, INTERVAL '10' SECOND") + " GROUP BY auction, window_start, window_end)) WHERE r <= 1");
    Q.put("q7", "SELECT MAX(price) AS price, window_start, window_end " + windows("TUMBLE", "bid", "INTERVAL '10' SECOND") + " GROUP BY window_start, window_end");
    String ten = "INTERVAL '10' SECOND";
    Q.put("q8", "SELECT p.id, p.name, a.id AS auction FROM (SELECT * " + windows("TUMBLE", "person", ten) + ") p JOIN (SELECT * " + windows("TUMBLE", "auction", ten)
      + ") a ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end");
    Q.put("q9", "SELECT id, category, seller, bidder, price, expires FROM (SELECT A.id, A.category, A.seller, A.expires, B.bidder, B.price, "
      + "ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.ts ASC, B.bidder ASC) AS r FROM auction A, bid B WHERE " + OPEN + ") WHERE r <= 1");
    Q.put("q11", "SELECT bidder, count(*) AS n, window_start, window_end FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(ts), " + ten + ")) GROUP BY bidder, window_start, window_end");
    Q.put("q13", "SELECT auction, bidder, price, ts, side(MOD(auction, 1000)) AS v FROM bid");
    Q.put("q14", "SELECT auction, bidder, CAST(price AS DOUBLE) * 0.908e0 AS price, CASE WHEN HOUR(ts) >= 8 AND HOUR(ts) <= 18 THEN 'day' WHEN HOUR(ts) <= 6 OR HOUR(ts) >= 20 THEN 'night' ELSE 'other' END AS part, "
      + "ts, letters(url) AS n FROM bid WHERE CAST(price AS DOUBLE) * 0.908e0 > 10000 AND CAST(price AS DOUBLE) * 0.908e0 < 500000");
    Q.put("q15", "SELECT " + ALL.substring(2) + " FROM bid GROUP BY " + DAY);
    Q.put("q16", "SELECT channel" + ALL + ", MAX(ts) AS m FROM bid GROUP BY channel, " + DAY);
    Q.put("q17", "SELECT auction" + COUNTS + ", MIN(price) AS mi, MAX(price) AS ma, AVG(CAST(price AS DOUBLE)) AS av, SUM(price) AS su FROM bid GROUP BY auction, " + DAY);
    Q.put("q18", "SELECT bidder, auction, ts " + ranked("bidder, auction", "ts DESC") + "FROM bid) WHERE r <= 1");
    Q.put("q19", "SELECT auction, price " + ranked("auction", "price DESC") + "FROM bid) WHERE r <= 10");
    Q.put("q20", "SELECT B.auction, B.bidder, B.price, B.channel, B.ts, A.item, A.seller, A.category FROM bid B JOIN auction A ON B.auction = A.id WHERE A.category = 10");
    Q.put("q21", "SELECT auction, bidder, price, channel, CASE LOWER(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3' "
      + "ELSE REGEXP_EXTRACT(url, 'channel_id=([^&]*)', 1) END AS n FROM bid");
    Q.put("q22", "SELECT auction, bidder, price, channel, SPLIT_INDEX(url, '/', 3) AS d1, SPLIT_INDEX(url, '/', 4) AS d2, SPLIT_INDEX(url, '/', 5) AS d3 FROM bid");
  }
  static final Set<String> ALL_KINDS = Set.of("q3", "q4", "q8", "q9", "q20");

  interface Job { void run() throws Exception; }

  static Job sql(StreamExecutionEnvironment env, String query, boolean mini, long n) {
    boolean all = ALL_KINDS.contains(query);
    DataStream<RowData> read = env.fromSource(new DataGeneratorSource<>(new Read(all), all ? n : n / 50 * 46, InternalTypeInfo.of(TYPE)), WatermarkStrategy.noWatermarks(), "events");
    StreamTableEnvironment te = StreamTableEnvironment.create(env);
    if (mini) {
      te.getConfig().set("table.exec.mini-batch.enabled", "true"); te.getConfig().set("table.exec.mini-batch.allow-latency", "2 s");
      te.getConfig().set("table.exec.mini-batch.size", "50000"); te.getConfig().set("table.optimizer.distinct-agg.split.enabled", "true");
    }
    Schema.Builder s = Schema.newBuilder();
    for (RowType.RowField f : TYPE.getFields()) s.column(f.getName(), f.getType().asSerializableString());
    te.createTemporaryView("events", te.fromDataStream(read, s.watermark("ts", "ts - INTERVAL '" + LATE / 1000.0 + "' SECOND").build()));
    te.createTemporarySystemFunction("letters", Letters.class); te.createTemporarySystemFunction("side", Side.class);
    te.executeSql("CREATE TEMPORARY VIEW person AS SELECT id, s1 AS name, s2 AS city, s3 AS state, ts FROM events WHERE kind = 0");
    te.executeSql("CREATE TEMPORARY VIEW auction AS SELECT id, s1 AS item, x AS seller, y AS category, z AS reserve, ts, expires FROM events WHERE kind = 1");
    te.executeSql("CREATE TEMPORARY VIEW bid AS SELECT id AS auction, x AS bidder, z AS price, s1 AS channel, s2 AS url, ts FROM events WHERE kind = 2");
    Table table = te.sqlQuery(Q.get(query));
    return () -> table.executeInsert(TableDescriptor.forConnector("check").build()).await();
  }

  // -- word count, and counts in tumbling windows: streams of objects ------------------------------
  static final String[] LINES = new String[100];
  static { for (int i = 0; i < 100; i++) { StringJoiner s = new StringJoiner(" "); for (int j = 0; j < 10; j++) s.add("w" + (i * 10 + j) * 7919 % 1000); LINES[i] = s.toString(); } }
  static Job words(StreamExecutionEnvironment env, long n) {
    env.fromSource(new DataGeneratorSource<>((GeneratorFunction<Long, String>) i -> LINES[(int) (i % 100)], n / 10, Types.STRING), WatermarkStrategy.noWatermarks(), "lines")
      .flatMap((FlatMapFunction<String, Tuple2<String, Long>>) (s, out) -> { for (String w : s.split(" ")) out.collect(Tuple2.of(w, 1L)); }).returns(Types.TUPLE(Types.STRING, Types.LONG))
      .keyBy(t -> t.f0, Types.STRING).sum(1).sinkTo(new DiscardingSink<>());
    return () -> env.execute();
  }
  static Job windows(StreamExecutionEnvironment env, long n) {
    env.fromSource(new DataGeneratorSource<>((GeneratorFunction<Long, Tuple2<Integer, Long>>) i -> Tuple2.of((int) (i % 1000), i / 100), n, Types.TUPLE(Types.INT, Types.LONG)),
        WatermarkStrategy.<Tuple2<Integer, Long>>forMonotonousTimestamps().withTimestampAssigner((t, x) -> t.f1), "events")
      .keyBy(t -> t.f0, Types.INT).window(TumblingEventTimeWindows.of(java.time.Duration.ofSeconds(10)))
      .aggregate(new AggregateFunction<Tuple2<Integer, Long>, Long, Long>() {
        public Long createAccumulator() { return 0L; } public Long add(Tuple2<Integer, Long> v, Long s) { return s + 1; }
        public Long getResult(Long s) { return s; } public Long merge(Long x, Long y) { return x + y; } })
      .sinkTo(new DiscardingSink<>());
    return () -> env.execute();
  }

  public static void main(String[] args) throws Exception {
    int most = Integer.parseInt(args[0]), b = 0;
    events = new RowData[most]; bids = new RowData[most / 50 * 46];
    for (int i = 0; i < most; i++) { events[i] = event(i); if (i % 50 > 3) bids[b++] = events[i]; }
    var system = (com.sun.management.OperatingSystemMXBean) java.lang.management.ManagementFactory.getOperatingSystemMXBean();
    BufferedReader asked = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = asked.readLine()) != null; ) {
      String[] words = line.split(" ");
      long n = Long.parseLong(words[2]);
      check = words[3].equals("check"); in = net = sum = 0;
      Configuration c = new Configuration();
      c.set(PipelineOptions.OBJECT_REUSE, true);
      c.set(RestOptions.BIND_PORT, "0"); c.set(RestOptions.BIND_ADDRESS, "127.0.0.1"); c.set(RestOptions.ADDRESS, "127.0.0.1");
      c.set(TaskManagerOptions.MANAGED_MEMORY_SIZE, MemorySize.ofMebiBytes(256));
      StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(1, c);
      try {
        Job job = words[0].equals("words") ? words(env, n) : words[0].equals("windows") ? windows(env, n) : sql(env, words[0], words[1].equals("mini"), n);
        System.gc();
        long before = system.getProcessCpuTime();
        job.run();
        System.out.printf(Locale.ROOT, "{\"cpu\": %.6f, \"sunk\": %d, \"rows\": %d, \"sum\": %d}%n", (system.getProcessCpuTime() - before) / 1e9, in, net, sum);
      } catch (Exception e) { System.out.println("{\"error\": \"" + e.toString().replaceAll("[\"\\\\\\s]+", " ") + "\"}"); }
      System.out.flush();
    }
    System.exit(0);
  }
}
