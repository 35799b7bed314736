//! The table of all public routes.

use actix_web::App;
use actix_web::http::header::ALLOW;
use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, call_service, init_service};
use sakshi_web::edge::edge;

use actix_web::http::Method;
use sakshi::public::ROUTES;
use sakshi_web::routing::configure;

#[actix_rt::test]
async fn a_path_accepts_exactly_the_methods_that_its_405_lists() {
    let app = init_service(
        App::new().wrap(from_fn(edge)).configure(|config| ROUTES.iter().for_each(|table| configure(config, table))),
    )
    .await;
    for row in ROUTES.into_iter().flatten() {
        let request = |method: &Method| TestRequest::default().method(method.clone()).uri(row.path).to_request();
        let refused = call_service(&app, request(&Method::TRACE)).await;
        assert_eq!(refused.status(), 405, "{}", row.path);
        let allow = refused.headers().get(ALLOW).unwrap().to_str().unwrap().to_owned();
        for method in [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let is_accepted = call_service(&app, request(&method)).await.status() != 405;
            assert_eq!(
                is_accepted,
                allow.split(", ").any(|listed| listed == method.as_str()),
                "{method} {} lists {allow}",
                row.path
            );
        }
    }
}
