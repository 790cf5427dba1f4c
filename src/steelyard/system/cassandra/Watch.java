// Reads attributes of management beans of one or several nodes once per interval, for the probe jmx.
// Usage: Watch SECONDS NAME=BEAN#ATTRIBUTE[#KEY]... -- LABEL=ADDRESS:PORT...
// Prints `LABEL TIME SECONDS NAME=BEFORE/NOW...`, or without a label where it is empty: the time of the reading in seconds
// since the epoch, the time since the reading before, and each attribute as it was and as it is. `TIME connected` and
// `TIME lost` tell of connections. A bean may be a pattern: what matches is added up, and so are the values of a map.
// Ends when standard output is closed.

import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import javax.management.InstanceNotFoundException;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.openmbean.CompositeData;
import javax.management.remote.rmi.RMIConnector;

public final class Watch {
    private record Wanted(String name, ObjectName bean, String attribute, String key) {
        static Wanted of(String word) throws Exception {
            // Names of beans contain '=', so the first one ends the name.
            int equals = word.indexOf('=');
            String[] parts = word.substring(equals + 1).split("#");
            String key = parts.length > 2 ? parts[2] : "";
            return new Wanted(word.substring(0, equals), new ObjectName(parts[0]), parts[1], key);
        }
    }

    public static void main(String[] words) throws Exception {
        double interval = Double.parseDouble(words[0]);
        int split = List.of(words).indexOf("--");
        List<Wanted> wanted = new ArrayList<>();
        for (int i = 1; i < split; i++) {
            wanted.add(Wanted.of(words[i]));
        }
        List<Thread> threads = new ArrayList<>();
        for (int i = split + 1; i < words.length; i++) {
            String[] target = words[i].split("=", 2);
            String label = target[0].isEmpty() ? "" : target[0] + " ";
            Thread thread = new Thread(() -> watch(label, target[1], wanted, interval));
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private static void watch(String label, String contact, List<Wanted> wanted, double interval) {
        boolean known = false;
        while (true) {
            try (RMIConnector connector = Beans.connector(contact)) {
                connector.connect();
                say(label + time() + " connected");
                known = true;
                read(connector.getMBeanServerConnection(), label, wanted, interval);
            } catch (Exception error) {
                System.err.println(contact + ": " + error);
                if (!known) {
                    System.exit(1);
                }
                say(label + time() + " lost");
            }
            pause(interval);
        }
    }

    private static void read(MBeanServerConnection server, String label, List<Wanted> wanted, double interval)
            throws Exception {
        Map<Wanted, List<ObjectName>> beans = new LinkedHashMap<>();
        for (Wanted each : wanted) {
            Set<ObjectName> named = each.bean().isPattern() ? server.queryNames(each.bean(), null) : Set.of(each.bean());
            beans.put(each, List.copyOf(named));
        }
        Map<String, Double> before = values(server, beans);
        long beforeNs = System.nanoTime();
        while (true) {
            pause(interval);
            String at = time();
            Map<String, Double> now = values(server, beans);
            long nowNs = System.nanoTime();
            StringBuilder line = new StringBuilder(label).append(at);
            line.append(String.format(Locale.ROOT, " %.6f", (nowNs - beforeNs) / 1e9));
            for (Map.Entry<String, Double> each : now.entrySet()) {
                Double then = before.get(each.getKey());
                if (then != null) {
                    line.append(' ').append(each.getKey()).append('=').append(text(then));
                    line.append('/').append(text(each.getValue()));
                }
            }
            say(line.toString());
            before = now;
            beforeNs = nowNs;
        }
    }

    private static Map<String, Double> values(MBeanServerConnection server, Map<Wanted, List<ObjectName>> beans)
            throws Exception {
        Map<String, Double> values = new LinkedHashMap<>();
        for (Map.Entry<Wanted, List<ObjectName>> each : beans.entrySet()) {
            Wanted wanted = each.getKey();
            double sum = 0;
            try {
                for (ObjectName bean : each.getValue()) {
                    sum += number(server.getAttribute(bean, wanted.attribute()), wanted.key());
                }
                values.put(wanted.name(), sum);
            } catch (InstanceNotFoundException missing) {
                // This server has no such bean, or not yet: its numbers are left out.
            }
        }
        return values;
    }

    private static double number(Object value, String key) {
        if (value instanceof CompositeData data && !key.isEmpty()) {
            return number(data.get(key), "");
        }
        if (value instanceof Map<?, ?> map) {
            return map.values().stream().mapToDouble(each -> number(each, "")).sum();
        }
        return ((Number) value).doubleValue();
    }

    // Whole numbers without exponent, so that no digit is lost.
    private static String text(double value) {
        return value == Math.rint(value) && Math.abs(value) < 1e15 ? Long.toString((long) value) : Double.toString(value);
    }

    private static String time() {
        Instant now = Instant.now();
        return String.format(Locale.ROOT, "%d.%06d", now.getEpochSecond(), now.getNano() / 1000);
    }

    // Until the next whole multiple of the interval.
    private static void pause(double interval) {
        double now = System.currentTimeMillis() / 1000.0;
        double wait = interval - now % interval;
        try {
            Thread.sleep((long) (1000 * (wait < 0.01 * interval ? wait + interval : wait)));
        } catch (InterruptedException stopped) {
            System.exit(0);
        }
    }

    private static void say(String line) {
        System.out.println(line);
        if (System.out.checkError()) {
            System.exit(0);
        }
    }
}
