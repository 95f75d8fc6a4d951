package serve

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	balancev1 "github.com/cotenant/cotenant/serve/proto/cotenant/balance/v1"
)

// maxRequest bounds the bytes of a request, unpacked.
const maxRequest = 8 << 20

// compressFrom is the size of an answer from which it is compressed, for those
// who ask: the shares of a thousand workers are less, and wait for nothing.
const compressFrom = 16 << 10

// Handler answers gRPC, gRPC-web and Connect (JSON by POST), and shows
// /metrics, /healthz (it runs) and /readyz (it takes requests). Where token is
// not empty, all but the last two need `Authorization: Bearer TOKEN`.
func Handler(c *Coordinator, token string) http.Handler {
	options := []connect.HandlerOption{
		connect.WithReadMaxBytes(maxRequest),
		withJSON(),
		connect.WithCompressMinBytes(compressFrom),
		connect.WithInterceptors(connect.UnaryInterceptorFunc(c.metrics.intercept)),
		connect.WithRecover(func(_ context.Context, s connect.Spec, _ http.Header, cause any) error {
			c.o.Warn(fmt.Sprintf("%s: panic: %v\n%s", method(s.Procedure), cause, debug.Stack()))
			return connect.NewError(connect.CodeInternal, errors.New("a fault of the coordinator, which its log describes"))
		}),
	}
	open := http.NewServeMux()
	fine := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }
	open.HandleFunc("GET /healthz", fine)
	open.HandleFunc("GET /readyz", fine)

	guarded := http.NewServeMux()
	guarded.Handle(balancev1.NewBalanceServiceHandler(c, options...))
	guarded.Handle("GET /metrics", promhttp.HandlerFor(c.metrics.registry, promhttp.HandlerOpts{}))
	open.Handle("/", withToken(guarded, token, options))
	return open
}

// withToken lets those pass who show the token.
func withToken(next http.Handler, token string, options []connect.HandlerOption) http.Handler {
	if token == "" {
		return next
	}
	want := sha256.Sum256([]byte(token))
	refuse := connect.NewErrorWriter(options...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		is := sha256.Sum256([]byte(given))
		if ok && subtle.ConstantTimeCompare(is[:], want[:]) == 1 {
			next.ServeHTTP(w, r)
			return
		}
		const why = "this coordinator needs its token, as `Authorization: Bearer TOKEN`"
		if refuse.IsSupported(r) {
			_ = refuse.Write(w, r, connect.NewError(connect.CodeUnauthenticated, errors.New(why))) // whoever hung up needs no answer
			return
		}
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, why, http.StatusUnauthorized)
	})
}
