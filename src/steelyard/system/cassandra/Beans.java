// Calls a few management beans of Cassandra on all nodes at once: what `nodetool flush` and `nodetool import` do, in one
// small process instead of one large one a node, and without JNDI, which small Java runtimes lack.
// Usage: Beans flush KEYSPACE [PASSWORD_FILE ADDRESS:PORT=TABLE,TABLE]...
//        Beans import KEYSPACE [PASSWORD_FILE ADDRESS:PORT=TABLE=FOLDER]...
//        Beans compiled - [PASSWORD_FILE ADDRESS:PORT]...    prints ADDRESS:PORT MILLISECONDS for each: its compiler's time
//        Beans decommission - [PASSWORD_FILE ADDRESS:PORT=FORCE]...    returns when the node has left; FORCE: true or false
//        Beans assassinate - [PASSWORD_FILE ADDRESS:PORT=NODE]...    has all nodes forget NODE, an address, which is down
//        Beans refresh KEYSPACE [PASSWORD_FILE ADDRESS:PORT=TABLE]...    before 4.0: loads what is in the table's folder
//        Beans read BEAN#ATTRIBUTE[;BEAN#ATTRIBUTE]... [PASSWORD_FILE ADDRESS:PORT]...    prints ADDRESS:PORT NUMBER,NUMBER...
//        Beans cleanup KEYSPACE [PASSWORD_FILE ADDRESS:PORT]...
//        Beans compaction KEYSPACE [PASSWORD_FILE ADDRESS:PORT=TABLE,TABLE]...    all files of a table into one
//        Beans repair KEYSPACE [PASSWORD_FILE ADDRESS:PORT]...    from 4.0 on: all ranges of the node, in full
// The file holds the user and the password of that node's beans, as Java's own password files do: a command line is seen by
// everybody.

import java.nio.file.Files;
import java.nio.file.Path;
import java.rmi.registry.LocateRegistry;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import javax.management.InstanceNotFoundException;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.rmi.RMIConnector;
import javax.management.remote.rmi.RMIServer;

public final class Beans {
    private static final String DOMAIN = "org.apache.cassandra.db:type=";

    private static final ObjectName STORAGE = storage();

    private static ObjectName storage() {
        try {
            return new ObjectName(DOMAIN + "StorageService");
        } catch (javax.management.MalformedObjectNameException error) {
            throw new IllegalStateException(error);
        }
    }

    public static void main(String[] words) throws Exception {
        List<Callable<Void>> calls = new ArrayList<>();
        for (int i = 2; i < words.length; i += 2) {
            String passwordFile = words[i];
            String[] target = words[i + 1].split("=", 3);
            calls.add(() -> call(passwordFile, words[0], words[1], target));
        }
        ExecutorService pool = Executors.newFixedThreadPool(calls.size());
        int failed = 0;
        for (Future<Void> done : pool.invokeAll(calls)) {
            try {
                done.get();
            } catch (Exception error) {
                System.err.println(error.getCause() == null ? error : error.getCause());
                failed = 1;
            }
        }
        System.exit(failed);
    }

    // A connector to the beans behind ADDRESS:PORT, not connected yet.
    static RMIConnector connector(String contact, String passwordFile) throws Exception {
        // Java's RMI looks up the name of its own host before it connects, which takes 10 s where a name server does not
        // answer. It is needed only by a program that offers objects to others, which this one does not.
        System.setProperty("java.rmi.server.hostname", "localhost");
        int colon = contact.lastIndexOf(':');
        int port = Integer.parseInt(contact.substring(colon + 1));
        RMIServer server = (RMIServer) LocateRegistry.getRegistry(contact.substring(0, colon), port).lookup("jmxrmi");
        String[] userAndPassword = Files.readString(Path.of(passwordFile)).trim().split("\\s+", 2);
        return new RMIConnector(server, Map.of(JMXConnector.CREDENTIALS, userAndPassword));
    }

    private static Void call(String passwordFile, String what, String keyspace, String[] target) throws Exception {
        String contact = target[0];
        try (RMIConnector connector = connector(contact, passwordFile)) {
            connector.connect();
            MBeanServerConnection beans = connector.getMBeanServerConnection();
            if (what.equals("flush")) {
                flush(beans, keyspace, target[1].split(","));
            } else if (what.equals("import")) {
                takeIn(beans, keyspace, target[1], target[2]);
            } else if (what.equals("compiled")) {
                ObjectName compiler = new ObjectName("java.lang:type=Compilation");
                System.out.println(contact + " " + beans.getAttribute(compiler, "TotalCompilationTime"));
            } else if (what.equals("read")) {
                List<String> numbers = new ArrayList<>();
                for (String name : keyspace.split(";")) {
                    numbers.add(Double.toString(read(beans, name.split("#"))));
                }
                System.out.println(contact + " " + String.join(",", numbers));
            } else if (what.equals("refresh")) {
                Object[] values = {keyspace, target[1]};
                beans.invoke(STORAGE, "loadNewSSTables", values, new String[] {"java.lang.String", "java.lang.String"});
            } else if (what.equals("decommission")) {
                Object[] values = {Boolean.valueOf(target[1])};
                beans.invoke(STORAGE, "decommission", values, new String[] {"boolean"});
            } else if (what.equals("assassinate")) {
                ObjectName gossiper = new ObjectName("org.apache.cassandra.net:type=Gossiper");
                beans.invoke(gossiper, "assassinateEndpoint", new Object[] {target[1]}, new String[] {"java.lang.String"});
            } else if (what.equals("cleanup")) {
                cleanUp(beans, keyspace);
            } else if (what.equals("compaction")) {
                Object[] values = {false, keyspace, target[1].split(",")};
                String[] types = {"boolean", String.class.getName(), String[].class.getName()};
                beans.invoke(STORAGE, "forceKeyspaceCompaction", values, types);
            } else if (what.equals("repair")) {
                repair(beans, keyspace);
            } else {
                throw new IllegalArgumentException(what);
            }
        } catch (Exception error) {
            throw new Exception(contact + ": " + what + ": " + error, error);
        }
        return null;
    }

    // A pool without tasks so far has no beans yet.
    private static double read(MBeanServerConnection beans, String[] beanAndAttribute) throws Exception {
        try {
            return Watch.number(beans.getAttribute(new ObjectName(beanAndAttribute[0]), beanAndAttribute[1]), "");
        } catch (InstanceNotFoundException missing) {
            return 0;
        }
    }

    private static void flush(MBeanServerConnection beans, String keyspace, String[] tables) throws Exception {
        Object[] values = {keyspace, tables};
        String[] types = {String.class.getName(), String[].class.getName()};
        beans.invoke(STORAGE, "forceKeyspaceFlush", values, types);
    }

    // One table after the other, as `nodetool cleanup --jobs 1`.
    private static void cleanUp(MBeanServerConnection beans, String keyspace) throws Exception {
        Object[] values = {1, keyspace, new String[0]};
        String[] types = {"int", String.class.getName(), String[].class.getName()};
        Object status = beans.invoke(STORAGE, "forceKeyspaceCleanup", values, types);
        if (!status.equals(0)) {
            throw new IllegalStateException("the cleanup ended with status " + status + ", see the node's log");
        }
    }

    // As `nodetool repair --full`. Of one copy there is nothing to repair: the number is 0.
    private static void repair(MBeanServerConnection beans, String keyspace) throws Exception {
        Object[] values = {keyspace, Map.of("incremental", "false", "parallelism", "parallel")};
        int number = (Integer) beans.invoke(STORAGE, "repairAsync", values, new String[] {String.class.getName(), Map.class.getName()});
        while (number > 0) {
            List<?> status = (List<?>) beans.invoke(STORAGE, "getParentRepairStatus", new Object[] {number}, new String[] {"int"});
            if (status != null && status.get(0).equals("FAILED")) {
                throw new IllegalStateException("the repair failed: " + status);
            }
            if (status != null && status.get(0).equals("COMPLETED")) {
                return;
            }
            Thread.sleep(100);
        }
    }

    // Keep level and repair state, so that no file is rewritten; the files are our own, so nothing is verified.
    private static void takeIn(MBeanServerConnection beans, String keyspace, String table, String folder) throws Exception {
        boolean resetLevel = false, clearRepaired = false, verify = false, verifyTokens = false;
        boolean invalidateCaches = true, extendedVerify = false, copy = false;
        Object[] values = {
            Set.of(folder), resetLevel, clearRepaired, verify, verifyTokens, invalidateCaches, extendedVerify, copy
        };
        String[] types = new String[values.length];
        types[0] = Set.class.getName();
        java.util.Arrays.fill(types, 1, types.length, "boolean");
        ObjectName bean = new ObjectName(DOMAIN + "Tables,keyspace=" + keyspace + ",table=" + table);
        List<?> refused = (List<?>) beans.invoke(bean, "importNewSSTables", values, types);
        if (!refused.isEmpty()) {
            throw new IllegalStateException("could not import " + refused);
        }
    }
}
