// The jobs of workloads `wordcount`, `sort` and `terasort`: Job NAME INPUT OUTPUT. The last line that it prints is a JSON
// object: the records of the output and the sum of their CRC-32, which the laboratory compares with those of the input.
// Spark jobs of the group `check` read the output, and are no part of the work.
//
// Spark's own compiler of expressions (Janino) compiles it, so no user needs a JDK: hence neither generics nor lambdas.

import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.zip.CRC32;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.api.java.function.Function;
import org.apache.spark.api.java.function.Function2;
import org.apache.spark.api.java.function.PairFunction;
import scala.Tuple2;

public final class Job {
    private static final int TERA_KEY = 10;

    public static void main(String[] words) {
        String name = words[0];
        int key = name.equals("terasort") ? TERA_KEY : Integer.MAX_VALUE;
        boolean counts = name.equals("wordcount");
        if (!counts && !name.equals("sort") && !name.equals("terasort")) {
            System.err.println("no job " + name + ": allowed are wordcount, sort, terasort");
            System.exit(2);
        }
        JavaSparkContext spark = new JavaSparkContext(new SparkConf().setAppName(name));
        JavaRDD lines = spark.textFile(words[1]);
        JavaRDD result = counts ? counted(lines) : sorted(lines, key);
        result.saveAsTextFile(words[2]);
        spark.setJobGroup("check", "", false);
        Iterator parts = spark.textFile(words[2]).mapPartitions(new Part(key)).collect().iterator();
        long records = 0L;
        long digest = 0L;
        boolean inOrder = true;
        String last = "";
        while (parts.hasNext()) {
            Object[] part = (Object[]) parts.next();
            records += ((Long) part[0]).longValue();
            digest += ((Long) part[1]).longValue();
            inOrder &= ((Boolean) part[2]).booleanValue();
            if (part[3] != null) {
                inOrder &= last.compareTo((String) part[3]) <= 0;
                last = (String) part[4];
            }
        }
        spark.stop();
        String order = counts ? "" : ", \"sorted\": " + inOrder;
        System.out.println("{\"records\": " + records + ", \"digest\": \"" + digest + "\"" + order + "}");
    }

    private static JavaRDD counted(JavaRDD lines) {
        return lines.flatMap(new FlatMapFunction() {
            public Iterator call(Object line) {
                return Arrays.asList(((String) line).split(" ")).iterator();
            }
        }).mapToPair(new PairFunction() {
            public Tuple2 call(Object word) {
                return new Tuple2(word, Long.valueOf(1L));
            }
        }).reduceByKey(new Function2() {
            public Object call(Object one, Object other) {
                return Long.valueOf(((Long) one).longValue() + ((Long) other).longValue());
            }
        }).map(new Function() {
            public Object call(Object pair) {
                return ((Tuple2) pair)._1() + " " + ((Tuple2) pair)._2();
            }
        });
    }

    private static JavaRDD sorted(JavaRDD lines, final int key) {
        return lines.mapToPair(new PairFunction() {
            public Tuple2 call(Object line) {
                return new Tuple2(start((String) line, key), line);
            }
        }).sortByKey().values();
    }

    static String start(String line, int key) {
        return line.length() <= key ? line : line.substring(0, key);
    }

    // Of one part of the output: number of records, sum of their CRC-32, whether they are in order, first and last key.
    private static final class Part implements FlatMapFunction {
        private final int key;

        Part(int key) {
            this.key = key;
        }

        public Iterator call(Object of) throws Exception {
            long records = 0L;
            long digest = 0L;
            boolean inOrder = true;
            String first = null;
            String last = "";
            CRC32 sum = new CRC32();
            Iterator lines = (Iterator) of;
            while (lines.hasNext()) {
                String line = (String) lines.next();
                String now = start(line, key);
                inOrder &= last.compareTo(now) <= 0;
                first = first == null ? now : first;
                last = now;
                sum.reset();
                sum.update(line.getBytes("UTF-8"));
                digest += sum.getValue();
                records++;
            }
            Object[] part = {Long.valueOf(records), Long.valueOf(digest), Boolean.valueOf(inOrder), first, last};
            return Collections.singletonList(part).iterator();
        }
    }
}
