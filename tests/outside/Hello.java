/** Starts a program from a virtual machine. */
class Hello {
  public static void main(String[] words) throws Exception {
    System.out.println(new ProcessBuilder(words).inheritIO().start().waitFor());
  }
}
