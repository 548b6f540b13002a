// The price of a European call by Monte Carlo: each index draws one normal number (Box-Muller), and
// its negative. Channel 0 is the discounted payoff, channel 1 its square: their sums over the
// number of indices are the price and what its error follows from.
#include "tessera.cuh"

extern "C" __constant__ double spot = 100.0;
extern "C" __constant__ double strike = 105.0;
extern "C" __constant__ double interest = 0.05;
extern "C" __constant__ double volatility = 0.2;
extern "C" __constant__ double years = 1.0;

static __device__ double payoff(double normal) {
    const double drift = (interest - 0.5 * volatility * volatility) * years;
    const double end = spot * exp(drift + volatility * sqrt(years) * normal);
    return exp(-interest * years) * fmax(end - strike, 0.0);
}

extern "C" __global__ void compute(TesseraChunk chunk) {
    const TesseraIndex at = tessera_index(chunk);
    if (!at.valid) return;
    // In (0, 1], so that the logarithm is finite.
    const double length = 1.0 - tessera_uniform_double(chunk, at, 0);
    const double angle = tessera_uniform_double(chunk, at, 1);
    const double normal = sqrt(-2.0 * log(length)) * cospi(2.0 * angle);
    const double value = 0.5 * (payoff(normal) + payoff(-normal));
    tessera_store(chunk, at, 0, value);
    tessera_store(chunk, at, 1, value * value);
}
