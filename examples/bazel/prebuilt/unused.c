int prebuilt_unused(int x) { return x; }
