// Reads attributes of management beans of one or several nodes, for the probe jmx: a group per interval, in turn.
// Usage: Watch SECONDS -- NAME=BEAN#ATTRIBUTE[#KEY]... [-- NAME=...]... -- [PASSWORD_FILE LABEL=ADDRESS:PORT]...
// Prints `LABEL TIME SECONDS NAME=BEFORE/NOW...`, or without a label where it is empty: the time of the reading in seconds
// since the epoch, the time since the group's reading before, and each attribute as it was and as it is. `TIME connected` and
// `TIME lost` tell of connections. A bean may be a pattern: what matches is added up, and so are the values of a map.
// Ends when standard output is closed.

import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
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
    private static final class Wanted {
        final String name, attribute, key;
        final ObjectName bean;

        Wanted(String word) throws Exception {
            // Names of beans contain '=', so the first one ends the name.
            int equals = word.indexOf('=');
            String[] parts = word.substring(equals + 1).split("#");
            name = word.substring(0, equals);
            bean = new ObjectName(parts[0]);
            attribute = parts[1];
            key = parts.length > 2 ? parts[2] : "";
        }
    }

    public static void main(String[] words) throws Exception {
        double interval = Double.parseDouble(words[0]);
        int split = List.of(words).lastIndexOf("--");
        List<List<Wanted>> groups = new ArrayList<>();
        for (int i = 1; i < split; i++) {
            if (words[i].equals("--")) {
                groups.add(new ArrayList<>());
            } else {
                groups.get(groups.size() - 1).add(new Wanted(words[i]));
            }
        }
        List<Thread> threads = new ArrayList<>();
        for (int i = split + 1; i < words.length; i += 2) {
            String passwordFile = words[i];
            String[] target = words[i + 1].split("=", 2);
            String label = target[0].isEmpty() ? "" : target[0] + " ";
            Thread thread = new Thread(() -> watch(label, target[1], passwordFile, groups, interval));
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private static void watch(String label, String contact, String password, List<List<Wanted>> groups, double interval) {
        boolean known = false;
        while (true) {
            try (RMIConnector connector = Beans.connector(contact, password)) {
                connector.connect();
                say(label + time() + " connected");
                known = true;
                read(connector.getMBeanServerConnection(), label, groups, interval);
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

    // A group of attributes, and what the reading before said.
    private static final class Group {
        final Map<Wanted, List<ObjectName>> beans = new LinkedHashMap<>();
        Map<String, Double> before = Map.of();
        long beforeNs;

        Group(MBeanServerConnection server, List<Wanted> wanted) throws Exception {
            for (Wanted each : wanted) {
                boolean pattern = each.bean.isPattern();
                beans.put(each, List.copyOf(pattern ? server.queryNames(each.bean, null) : Set.of(each.bean)));
            }
            before = values(server, beans);
            beforeNs = System.nanoTime();
        }
    }

    private static void read(MBeanServerConnection server, String label, List<List<Wanted>> wanted, double interval)
            throws Exception {
        List<Group> groups = new ArrayList<>();
        for (List<Wanted> each : wanted) {
            groups.add(new Group(server, each));
        }
        for (int turn = 0;; turn++) {
            pause(interval);
            Group group = groups.get(turn % groups.size());
            String at = time();
            Map<String, Double> now = values(server, group.beans);
            long nowNs = System.nanoTime();
            StringBuilder line = new StringBuilder(label).append(at);
            line.append(String.format(Locale.ROOT, " %.6f", (nowNs - group.beforeNs) / 1e9));
            for (Map.Entry<String, Double> each : now.entrySet()) {
                Double then = group.before.get(each.getKey());
                if (then != null) {
                    line.append(' ').append(each.getKey()).append('=').append(text(then));
                    line.append('/').append(text(each.getValue()));
                }
            }
            say(line.toString());
            group.before = now;
            group.beforeNs = nowNs;
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
                    sum += number(server.getAttribute(bean, wanted.attribute), wanted.key);
                }
                values.put(wanted.name, sum);
            } catch (InstanceNotFoundException missing) {
                // This server has no such bean, or not yet: its numbers are left out.
            }
        }
        return values;
    }

    static double number(Object value, String key) {
        if (value instanceof CompositeData && !key.isEmpty()) {
            return number(((CompositeData) value).get(key), "");
        }
        if (value instanceof Collection) {
            return ((Collection<?>) value).size();
        }
        if (value instanceof Map) {
            return ((Map<?, ?>) value).values().stream().mapToDouble(each -> number(each, "")).sum();
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
