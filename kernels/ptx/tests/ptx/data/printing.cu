// Kernels that print and assert. Compiled by NVRTC for compute capability 7.5.

struct Words {
    long long wide;
    float small;
};

extern "C" __global__ void numbers(int count, double real) {
    if (threadIdx.x != 0) return;
    const int n = count;
    printf("%d %5d|%-5d|%05d %+d % d %u %x %#X %o\n", -n, n, n, n, n, n, -1, 255, 255, 8);
    printf("%lld %llu %hd %zu\n", -1ll << 40, ~0ull, (short)-3, sizeof(Words));
    const double r = real;
    printf("%f %.2f %10.3f|%-8.1f|%08.2f ", r, r, r, r, r);
    printf("%e %.3E %g %g %g\n", r, r, r, 1e-7, 1e10);
    printf("%s %.2s %c%c %% %8s|%-8s|", "text", "text", 'o', 'k', "a", "b");
    printf("%*d %.*f %q\n", 4, 7, 1, 0.25);
}

extern "C" __global__ void each(int* counts) {
    counts[threadIdx.x] = printf("%d of %d\n", threadIdx.x, blockDim.x);
}

extern "C" __global__ void endless(int times) {
    for (int i = 0; i < times; i++) printf("line %8d of an endless text, which nobody wants\n", i);
}

extern "C" __global__ void wild(const char* text) {
    printf(text);
}

extern "C" __global__ void asserts(int most) {
    assert((int)threadIdx.x < most);
}
